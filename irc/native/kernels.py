"""Kernels of fusion groups: code for how operands lie in memory, and calls of it for their sizes.

Code depends on element types, on which axes broadcast, and on where there are gaps, never on sizes: a group has few
kinds of it, however many shapes it meets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc.fuser.policy import ANCHORS
from irc.ir.kinds import CONSTANT
from irc.ir.tensor import Array
from irc.native.backend import with_loops
from irc.native.calls import call_of
from irc.native.groups import GroupBody, Program, read
from irc.native.inner_loops import straightened
from irc.native.jit import Code, process_jit
from irc.native.loops import Access, Space, Step, c_strides, emit, space_of
from irc.native.memory import new_array
from irc.native.target import current
from irc.runtime.backends import ArrayType, Unsupported
from irc.runtime.bounds import CURRENT, pace
from irc.runtime.execution import fail
from irc.runtime.kernels.registry import takes_out
from irc.runtime.kernels.support import check_size
from irc.runtime.lowering import runtime_constant

if TYPE_CHECKING:
    from irc.ir import Node, Value
    from irc.runtime.kernels.registry import Kernel
    from irc.runtime.lowering import Bound

Shape = tuple[int, ...]

PIECE = 100_000
"""Nanoseconds of work, by estimate, that are worth a thread, and that pass between looks at the clock."""

LONG = 1 << 22
"""Elements for one number of a range, from which on its loops pause."""

RELEASED = 10_000
"""Nanoseconds of work from which on other Python threads may run meanwhile."""

BYTE = np.dtype(np.uint8)

MOST_LAYOUTS = 64
"""Ways of lying in memory that one kernel keeps calls for."""


class Pointwise:
    """Compiles a run of pointwise operators.

    Args:
        nodes: the operators and constants.
        inputs: what they read.
        outputs: what they are to make.
    """

    def __init__(self, nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        self._nodes, self._inputs, self._outputs = nodes, inputs, outputs
        self._programs: dict[tuple[tuple[np.dtype[Any], bool], ...], Program] = {}
        self._codes: dict[Any, Code] = {}
        self._lock = Lock()

    def kernel(self, operands: Sequence[ArrayType | None]) -> Kernel:
        """The kernel for operands of these types. Raises `irc.runtime.backends.Unsupported`."""
        given = [operand for operand in operands if operand is not None]
        if len(given) != len(self._inputs):
            raise Unsupported("an operand is absent")
        program = self.program(given)
        shapes = program.shapes([operand.shape for operand in given])
        outputs = self._outputs
        if not all(value in shapes for value in outputs):
            raise Unsupported("a result is no array")
        by_shape: dict[Shape, list[int]] = {}
        for i, value in enumerate(outputs):
            by_shape.setdefault(shapes[value], []).append(i)
        parts = [
            (_Part(self, program, shape, shapes, [outputs[i] for i in where]), where)
            for shape, where in by_shape.items()
        ]
        if len(outputs) == 1:
            made = parts[0][0].kernel(program.constants)
        else:
            made = _several(parts, program.constants, [ArrayType(program.dtypes[v], shapes[v]) for v in outputs])
        if not any(operation.keeps_layout for operation in program.operations):
            return made
        from irc.native.torch_operators import laid_out

        return laid_out(program, outputs, shapes, made)

    def program(self, operands: Sequence[ArrayType]) -> Program:
        """The program for operands of these element types. Raises `irc.runtime.backends.Unsupported`."""
        key = tuple([(operand.dtype, bool(operand.shape)) for operand in operands])
        with self._lock:
            if key not in self._programs:
                self._programs[key] = read(self._nodes, [(value, *kind) for value, kind in zip(self._inputs, key)])
            return self._programs[key]

    def results(self, operands: Sequence[ArrayType]) -> list[ArrayType]:
        """The types of the results for operands of these types."""
        program = self.program(operands)
        shapes = program.shapes([operand.shape for operand in operands])
        return [ArrayType(program.dtypes[value], shapes[value]) for value in self._outputs]

    def overwrites(self, operands: Sequence[ArrayType]) -> list[tuple[int, int]]:
        """See `irc.runtime.backends.Backend.overwrites`: elements are read before those in their place are written."""
        results = self.results(operands)
        if any(operation.keeps_layout for operation in self.program(operands).operations):
            return []
        if len({result.shape for result in results}) > 1:  # those of one shape are made after those of another
            return []
        return [(i, k) for i, result in enumerate(results) for k, operand in enumerate(operands) if result == operand]

    def code(self, program: Program, body: GroupBody, results: Sequence[Value], space: Space) -> Code:
        """The code that makes ``results`` of arrays that lie as ``space`` says."""
        dtypes = [program.dtypes[value] for value in (*body.inputs, *results)]
        accesses = list(space.accesses(dtypes))
        for i in range(len(body.inputs), len(accesses)):
            accesses[i] = Access(dtypes[i], Step.DENSE)  # also where there is one element
        is_long = math.prod(space.sizes[1:]) > LONG
        key = tuple(dtypes), tuple(results), tuple(accesses), len(space.sizes), is_long
        with self._lock:
            found = self._codes.get(key)
            if found is None:
                depth, name = len(space.sizes), "irc.group"
                lying = " ".join(f"{access.dtype.name}{access.step.name}" for access in accesses)
                text = f"{body.key}\n{depth} {lying} {is_long}"
                found = process_jit().load(
                    name, text, lambda: emit(name, body, accesses, len(results), depth, current(), is_long)
                )
                self._codes[key] = found
            return found


class Anchored:
    """Compiles a convolution or a matrix product, which the interpreter's kernel computes, and what follows it.

    Args:
        nodes: as of `Pointwise`; one of them is no pointwise operator.
        inputs: likewise.
        outputs: likewise.
        bound: has the interpreter's kernels.

    Raises:
        Unsupported: there are several such operators, their result is used elsewhere, or another node makes what they
            take.
    """

    def __init__(self, nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value], bound: Bound) -> None:
        anchors = [node for node in nodes if node.kind in ANCHORS]
        self._anchor = anchors[0]
        if len(anchors) > 1:
            raise Unsupported(f"there are {len(anchors)} products or convolutions in the group")
        makers = {node for node in nodes if node.kind != CONSTANT}
        if any(value.node in makers for value in self._anchor.inputs):
            raise Unsupported(f"what {self._anchor.kind} takes is made in the group")
        self._made = self._anchor.output
        if self._made in outputs:
            raise Unsupported(f"the result of {self._anchor.kind} itself is used elsewhere")
        self._inputs = [*inputs, self._made]
        self._rest = Pointwise([node for node in nodes if node is not self._anchor], self._inputs, outputs)
        self._kernel = with_loops(bound.kernel(self._anchor))
        self._takes_out = takes_out(self._kernel)
        self._constants = {
            node.output: runtime_constant(node.attributes.get("value"), in_order=False)
            for node in nodes
            if node.kind == CONSTANT and self._anchor in node.output.iter_users()
        }

    def kernel(self, operands: Sequence[ArrayType | None]) -> Kernel:
        """The kernel for operands of these types. Raises `irc.runtime.backends.Unsupported`."""
        types = [operand for operand in operands if operand is not None]
        places = {value: i for i, value in enumerate(self._inputs)}
        first = self._anchor.inputs[0]
        dtype = types[places[first]].dtype if first in places else self._constants[first].dtype
        program = self._rest.program([*types, ArrayType(dtype, (1,))])  # or it raises
        if any(operation.is_of_one_shape for operation in program.operations):
            raise Unsupported("attributes align operands with a result whose shape is not known before")
        taken = [self._constants.get(value, places.get(value)) for value in self._anchor.inputs]
        anchor, compute, rest = self._anchor, self._kernel, self._rest
        epilogue: tuple[Kernel, bool] | None = None

        def run(*given: Array, out: Any = None) -> Any:
            nonlocal epilogue
            arguments = [given[x] if isinstance(x, int) else x for x in taken]
            try:
                if epilogue is not None and epilogue[1] and out is not None:
                    made = compute(*arguments, out=out)
                else:
                    made = np.asarray(compute(*arguments), order="C")
            except Exception as error:
                fail(error, anchor, arguments)
            if epilogue is None:
                kind = ArrayType(made.dtype, made.shape)
                kernel = rest.kernel([*types, kind])
                epilogue = kernel, self._takes_out and rest.results([*types, kind]) == [kind]
            return epilogue[0](*given, made, out=made if out is None and epilogue[1] else out)

        return run

    def overwrites(self, operands: Sequence[ArrayType]) -> list[tuple[int, int]]:
        """See `irc.runtime.backends.Backend.overwrites`: the product is in the result before operands are read."""
        return []


def arrays_for(types: Sequence[ArrayType], out: Sequence[Array | None] | None) -> tuple[Array, ...]:
    """Arrays for several results: those of ``out`` that are given, and new ones."""
    given = [None] * len(types) if out is None else out
    return tuple([new_array(shape, dtype) if x is None else x for (dtype, shape), x in zip(types, given)])


class Call(NamedTuple):
    """A call for arrays that lie in one way.

    Attributes:
        call: of the arrays, and maybe a range.
        code: is held by this.
        size: of the range.
        pieces: into which it is cut.
        scratch: bytes that each piece needs for itself, as one more array.
    """

    call: Callable[..., bool]
    code: Code
    size: int
    pieces: int
    scratch: int = 0

    @staticmethod
    def of(
        code: Code, arrays: int, layout: Sequence[int], size: int, work: float, *, is_in_order: bool, scratch: int = 0
    ) -> Call:
        """A call of a loop function, over a range of ``size``, which takes ``work`` nanoseconds by estimate."""
        count = arrays + bool(scratch)
        call = call_of(code.address, count, layout, size, is_in_order=is_in_order, releases=work > RELEASED)
        return Call(call, code, size, min(max(1, int(work) // PIECE), size), scratch)

    def run(self, arrays: Sequence[Array]) -> bool:
        """Compute; False if the arrays do not lie so."""
        size, pieces, call, scratch = self.size, self.pieces, self.call, self.scratch
        if scratch and CURRENT.scope.guard is not None:
            check_size((pieces, scratch), BYTE)
        if pieces == 1:
            return call(*arrays, np.empty(scratch, BYTE)) if scratch else call(*arrays)
        refused: list[int] = []

        def piece(number: int) -> None:
            own = (np.empty(scratch, BYTE),) if scratch else ()
            if not call(*arrays, *own, size * number // pieces, size * (number + 1) // pieces):
                refused.append(number)
            pace()

        CURRENT.scope.share(pieces, piece)
        return not refused


class _Part:
    """Those results of a kernel that have one shape."""

    def __init__(
        self, owner: Pointwise, program: Program, shape: Shape, shapes: dict[Value, Shape], results: Sequence[Value]
    ) -> None:
        self._owner, self._program, self.shape, self.results = owner, program, shape, results
        self._body = GroupBody(program, results)
        inputs = self._body.inputs
        self._where = [program.inputs.index(value) for value in inputs]
        self._is_all = self._where == list(range(len(program.inputs)))
        self._kinds = [(program.dtypes[value], shapes[value]) for value in inputs]
        self.dtypes = [program.dtypes[value] for value in results]
        self._is_empty = 0 in shape
        self._layouts: dict[Any, Call] = {}
        self._ordered = self._call([c_strides(size, dtype) for dtype, size in self._kinds], is_in_order=True)

    def _call(self, strides: Sequence[Shape], is_in_order: bool) -> Call:
        operands = [(shape, steps) for (_, shape), steps in zip(self._kinds, strides)]
        results = [(self.shape, c_strides(self.shape, dtype)) for dtype in self.dtypes]
        space = space_of(self.shape, [*operands, *results])
        code = self._owner.code(self._program, self._body, self.results, space)
        work = math.prod(space.sizes) * self._body.cost
        return Call.of(code, len(operands) + len(results), space.layout, space.sizes[0], work, is_in_order=is_in_order)

    def compute(self, arrays: Sequence[Array], results: Sequence[Array]) -> None:
        """Make ``results``, in C order, of what the program reads."""
        if self._is_empty:
            return
        taken = arrays if self._is_all else [arrays[i] for i in self._where]
        if self._ordered.run((*taken, *results)):
            return
        taken = [straightened(np.asarray(x)) for x in taken]
        strides = tuple([x.strides for x in taken])
        call = self._layouts.get(strides)
        if call is None:
            if len(self._layouts) >= MOST_LAYOUTS:
                self._layouts = {}
            call = self._layouts[strides] = self._call(strides, is_in_order=False)
        if not call.run((*taken, *results)):
            raise AssertionError("results are arrays in C order")

    def kernel(self, constants: Sequence[Array]) -> Kernel:
        """The kernel of one result."""
        shape, (dtype,) = self.shape, self.dtypes
        call, compute = self._ordered.call, self.compute
        is_simple = self._is_all and not constants and self._ordered.pieces == 1 and not self._is_empty

        def run(*operands: Array, out: Array | None = None) -> Array:
            if out is None:
                out = new_array(shape, dtype)
            if is_simple and call(*operands, out):
                return out
            compute((*operands, *constants), (out,))
            return out

        return run


def _several(
    parts: Sequence[tuple[_Part, list[int]]], constants: Sequence[Array], types: Sequence[ArrayType]
) -> Kernel:
    """The kernel of several results; each part says which of them it makes."""

    def run(*operands: Array, out: Sequence[Array | None] | None = None) -> tuple[Array, ...]:
        made = arrays_for(types, out)
        arrays = (*operands, *constants)
        for part, where in parts:
            part.compute(arrays, [made[i] for i in where])
        return made

    return run
