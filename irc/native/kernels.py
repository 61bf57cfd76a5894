"""Kernels of fusion groups: code for how operands lie in memory, and calls of it for their sizes.

Code depends on element types, on which axes broadcast, and on where there are gaps, never on sizes: a group has few
kinds of it, however many shapes it meets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc.fuser.policy import is_anchor
from irc.ir.kinds import CONSTANT
from irc.ir.tensor import Array
from irc.native.calls import Expected, call_of
from irc.native.groups import GroupBody, Program, read
from irc.native.inner_loops import straightened
from irc.native.jit import Code, process_jit
from irc.native.loops import Access, Space, Step, emit, space_of
from irc.native.memory import LEAST, new_array
from irc.native.target import current
from irc.runtime.array_memory import c_strides
from irc.runtime.backends import ArrayType, Unsupported
from irc.runtime.bounds import CURRENT, pace
from irc.runtime.execution import fail
from irc.runtime.kernels.registry import takes_out
from irc.runtime.kernels.support import check_size
from irc.runtime.lowering import runtime_constant
from irc.runtime.values import is_array

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

SMALL_SCRATCH = 1 << 20
"""Bytes of scratch that no limit need be asked for."""

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
        self._bodies: dict[Any, GroupBody] = {}
        self._codes: dict[Any, Code] = {}
        self._lock = Lock()

    def kernel(self, operands: Sequence[ArrayType]) -> Kernel:
        """The kernel for operands of these types. Raises `irc.runtime.backends.Unsupported`."""
        program = self.program(operands)
        shapes = program.shapes([operand.shape for operand in operands])
        outputs = self._outputs
        if not all(value in shapes for value in outputs):
            raise Unsupported("a result is no array")
        by_shape: dict[Shape, list[int]] = {}
        for i, value in enumerate(outputs):
            by_shape.setdefault(shapes[value], []).append(i)
        parts = [
            _Part(self, program, shape, shapes, [outputs[i] for i in where], where)
            for shape, where in by_shape.items()
            if 0 not in shape
        ]
        types = [ArrayType(program.dtypes[value], shapes[value]) for value in outputs]
        made = kernel_of(operands, program.constants, types, parts)
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

    def body(self, program: Program, results: Sequence[Value]) -> GroupBody:
        """The loop body that makes ``results``."""
        key = id(program), tuple(results)
        with self._lock:
            found = self._bodies.get(key)
            if found is None:
                found = self._bodies[key] = GroupBody(program, results)
            return found

    def code(self, body: GroupBody, dtypes: Sequence[np.dtype[Any]], space: Space) -> Code:
        """The code of ``body`` for operands and results of these element types that lie as ``space`` says."""
        accesses = list(space.accesses(dtypes))
        for i in range(len(body.inputs), len(accesses)):
            accesses[i] = Access(dtypes[i], Step.DENSE)  # also where there is one element
        is_long = math.prod(space.sizes[1:]) > LONG
        key = body.key, tuple(accesses), len(space.sizes), is_long
        with self._lock:
            found = self._codes.get(key)
            if found is None:
                depth, name, results = len(space.sizes), "irc.group", len(accesses) - len(body.inputs)
                lying = " ".join(f"{access.dtype.name}{access.step.name}" for access in accesses)
                text = f"{body.key}\n{depth} {lying} {is_long}"
                found = process_jit().load(
                    name, text, lambda: emit(name, body, accesses, results, depth, current(), is_long)
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
        anchors = [node for node in nodes if is_anchor(node)]
        self._anchor = anchors[0]
        if len(anchors) > 1:
            raise Unsupported(f"there are {len(anchors)} products or convolutions in the group")
        makers = {node for node in nodes if node.kind != CONSTANT}
        if any(value.node in makers for value in self._anchor.inputs):
            raise Unsupported(f"what {self._anchor.kind} takes is made in the group")
        self._made = self._anchor.output
        if self._made in outputs:
            raise Unsupported(f"the result of {self._anchor.kind} itself is used elsewhere")
        self._inputs = inputs
        used = {value for node in nodes if node is not self._anchor for value in node.inputs}
        rest = [x for x in nodes if x is not self._anchor and (x.kind != CONSTANT or x.output in used)]
        self._used = [i for i, value in enumerate(inputs) if value in used]
        self._rest = Pointwise(rest, [*(inputs[i] for i in self._used), self._made], outputs)
        self._kernel = bound.kernel(self._anchor)
        self._constants = {
            node.output: runtime_constant(node.attributes.get("value"), in_order=False)
            for node in nodes
            if node.kind == CONSTANT and self._anchor in node.output.iter_users()
        }

    def kernel(self, operands: Sequence[ArrayType]) -> Kernel:
        """The kernel for operands of these types. Raises `irc.runtime.backends.Unsupported`."""
        places = {value: i for i, value in enumerate((*self._inputs, *self._constants))}
        first = self._anchor.inputs[0]
        dtype = self._constants[first].dtype if first in self._constants else operands[places[first]].dtype
        used, rest = self._used, self._rest
        others = [operands[i] for i in used]
        program = rest.program([*others, ArrayType(dtype, (1,))])  # or it raises
        if any(operation.is_of_one_shape for operation in program.operations):
            raise Unsupported("attributes align operands with a result whose shape is not known before")
        constants = tuple(self._constants.values())
        taken = itemgetter(*[places[value] for value in self._anchor.inputs])
        anchor, compute, suits = self._anchor, self._kernel, suiting(operands)
        epilogue: tuple[Kernel, ArrayType | None] | None = None

        def run(*given: Array, out: Any = None) -> Any:
            nonlocal epilogue
            if not suits(*given):
                return NotImplemented
            arguments = taken((*given, *constants))
            try:
                if epilogue is not None and epilogue[1] is not None:
                    dtype, shape = epilogue[1]
                    out = new_array(shape, dtype) if out is None else out
                    made = compute(*arguments, out=out)
                else:
                    made = np.asarray(compute(*arguments), order="C")
            except Exception as error:
                fail(error, anchor, arguments)
            if epilogue is None:
                kind = ArrayType(made.dtype, made.shape)
                is_alike = takes_out(compute) and rest.results([*others, kind]) == [kind]
                # A product that is small is made in less time than it takes to be copied to where the result is.
                epilogue = rest.kernel([*others, kind]), kind if is_alike and made.nbytes >= LEAST else None
            return epilogue[0](*[given[i] for i in used], made, out=out)

        return run

    def overwrites(self, operands: Sequence[ArrayType]) -> list[tuple[int, int]]:
        """See `irc.runtime.backends.Backend.overwrites`: the product is in the result before operands are read."""
        return []


class Call(NamedTuple):
    """A call for arrays that lie in one way.

    Attributes:
        call: of the arrays, and maybe a range (`irc.native.calls`).
        code: is held by this.
        size: of the range.
        pieces: into which it is cut.
        scratch: bytes that each piece needs for itself.
    """

    call: Callable[..., bool]
    code: Code
    size: int
    pieces: int
    scratch: int = 0

    @property
    def is_simple(self) -> bool:
        """Whether nothing but `call` is to be done, without limits asked for."""
        return self.pieces == 1 and self.scratch <= SMALL_SCRATCH

    @staticmethod
    def of(
        code: Code,
        arrays: Sequence[Expected | None],
        layout: Sequence[int],
        size: int,
        work: float,
        scratch: int = 0,
    ) -> Call:
        """A call of a loop function, over a range of ``size``, which takes ``work`` nanoseconds by estimate."""
        call = call_of(code.address, arrays, layout, size, releases=work > RELEASED, scratch=scratch)
        return Call(call, code, size, 1, scratch).of_work(work)

    def of_work(self, work: float) -> Call:
        """This call in as many pieces as so many nanoseconds are worth."""
        pieces = min(max(1, int(work) // PIECE), self.size)
        return self if pieces == self.pieces else self._replace(pieces=pieces)

    def run(self, arrays: Sequence[Array]) -> bool:
        """Compute; False if the arrays are not as expected."""
        size, pieces, call, scratch = self.size, self.pieces, self.call, self.scratch
        if scratch and CURRENT.scope.guard is not None:
            check_size((pieces, scratch), BYTE)
        if pieces == 1:
            return call(*arrays)
        refused: list[int] = []

        def piece(number: int) -> None:
            if not call(*arrays, size * number // pieces, size * (number + 1) // pieces):
                refused.append(number)
            pace()

        CURRENT.scope.share(pieces, piece)
        return not refused


class Part:
    """Some results of a kernel, by one call.

    Args:
        ordered: the call for arrays in C order.
        expected: the operands and results that it takes.
        takes: which of the kernel's operands and constants these operands are.
        given: how many the kernel has.
        makes: which of its results these results are.
    """

    def __init__(
        self, ordered: Call, expected: Sequence[Expected], takes: Sequence[int], given: int, makes: Sequence[int]
    ) -> None:
        self.ordered, self._expected, self._takes, self._makes = ordered, expected, takes, makes
        self.takes_all = list(takes) == list(range(given))

    def run(self, arrays: Sequence[Array], results: Sequence[Array], are_suited: Callable[[], bool]) -> bool:
        """Make results of the operands and constants; False if these are not as ``are_suited`` asks."""
        taken = [arrays[i] for i in self._takes]
        made = [results[i] for i in self._makes]
        if self.ordered.run((*taken, *made)):
            return True
        if not are_suited():
            return False
        # As arrays of NumPy's own class and types: there are two of 64 bits.
        own = [np.asarray(x).view(each.dtype) for x, each in zip((*taken, *made), self._expected)]
        call, operands = self.otherwise(own[: len(taken)])
        if not call.run((*operands, *own[len(taken) :])):
            raise AssertionError("the call was made for these arrays")
        return True

    def otherwise(self, taken: Sequence[Array]) -> tuple[Call, Sequence[Array]]:
        """A call for such operands that lie in any way, and what it takes."""
        raise NotImplementedError


class _Part(Part):
    """Those results of a kernel that have one shape."""

    def __init__(
        self,
        owner: Pointwise,
        program: Program,
        shape: Shape,
        shapes: dict[Value, Shape],
        results: Sequence[Value],
        makes: Sequence[int],
    ) -> None:
        self._owner, self._body = owner, owner.body(program, results)
        inputs = self._body.inputs
        self._operands = [Expected(program.dtypes[value], shapes[value]) for value in inputs]
        self._made = [Expected(program.dtypes[value], shape) for value in results]
        self._layouts: dict[Any, Call] = {}
        takes = [program.inputs.index(value) for value in inputs]
        ordered = self._call(self._operands)
        super().__init__(ordered, [*self._operands, *self._made], takes, len(program.inputs), makes)

    def _call(self, operands: Sequence[Expected]) -> Call:
        expected = [*operands, *self._made]
        space = space_of(
            self._made[0].shape,
            [
                (shape, c_strides(shape, dtype.itemsize) if strides is None else strides)
                for dtype, shape, strides in expected
            ],
        )
        code = self._owner.code(self._body, [dtype for dtype, *_ in expected], space)
        work = math.prod(space.sizes) * self._body.cost
        return Call.of(code, expected, space.layout, space.sizes[0], work)

    def otherwise(self, taken: Sequence[Array]) -> tuple[Call, Sequence[Array]]:
        taken = [straightened(x) for x in taken]
        strides = tuple([x.strides for x in taken])
        call = self._layouts.get(strides)
        if call is None:
            if len(self._layouts) >= MOST_LAYOUTS:
                self._layouts = {}
            operands = [each._replace(strides=steps) for each, steps in zip(self._operands, strides)]
            call = self._layouts[strides] = self._call(operands)
        return call, taken


def suiting(types: Sequence[ArrayType]) -> Callable[..., bool]:
    """A function that says whether operands are arrays of these types."""
    are_in_order = call_of(0, [Expected(*each) for each in types], (), 0, releases=False)
    kinds = list(types)

    def suits(*given: Any) -> bool:
        return are_in_order(*given) or [ArrayType(x.dtype, x.shape) if is_array(x) else None for x in given] == kinds

    return suits


def kernel_of(
    operands: Sequence[ArrayType], constants: Sequence[Array], results: Sequence[ArrayType], parts: Sequence[Part]
) -> Kernel:
    """The kernel that makes ``results`` by ``parts``: see `irc.native.backend.Compiler`."""
    sizes = [dtype.itemsize * math.prod(shape) for dtype, shape in results]
    are_small = all(0 < size < LEAST for size in sizes)  # made in less time than it takes to look at their sizes
    is_simple = len(parts) == 1 and parts[0].takes_all and parts[0].ordered.is_simple
    call = parts[0].ordered.call if is_simple else _refuses
    suits = suiting(operands)

    def compute(given: Sequence[Any], made: Sequence[Array]) -> bool:
        if not all(x.flags.c_contiguous and ArrayType(x.dtype, x.shape) == kind for x, kind in zip(made, results)):
            return False
        if len(parts) != 1 and not suits(*given):  # nothing is written before it is certain that all parts run
            return False
        arrays = (*given, *constants)
        return all(part.run(arrays, made, lambda: suits(*given)) for part in parts)

    def several(*given: Any, out: Sequence[Array | None] | None = None) -> Any:
        known = (None,) * len(results) if out is None else out
        if call(*given, *constants, *known):  # it refuses if there is None among them
            return tuple(known)
        if are_small and CURRENT.scope.guard is None:
            made = tuple([np.empty(shape, dtype) if x is None else x for (dtype, shape), x in zip(results, known)])
        elif suits(*given):
            made = tuple([new_array(shape, dtype) if x is None else x for (dtype, shape), x in zip(results, known)])
        else:
            return NotImplemented
        return made if call(*given, *constants, *made) or compute(given, made) else NotImplemented

    if len(results) != 1:
        return several
    ((dtype, shape),) = results

    def one(*given: Any, out: Array | None = None) -> Any:
        if out is None:
            if are_small and CURRENT.scope.guard is None:
                out = np.empty(shape, dtype)
            elif suits(*given):
                out = new_array(shape, dtype)
            else:
                return NotImplemented
        return out if call(*given, *constants, out) or compute(given, (out,)) else NotImplemented

    return one


def _refuses(*arrays: Any) -> bool:
    return False
