"""Kernels of programs over rows: code for how arrays lie in memory, and calls of it for their sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc.native.jit import Code, process_jit
from irc.native.kernels import BYTE, LONG, Call, arrays_for
from irc.native.loops import Access, Space, Step, c_strides, space_of
from irc.native.memory import new_array
from irc.native.row_loops import BLOCK, Shape, emit
from irc.native.row_passes import is_light, is_plain_sum, is_scalar, listing, overwritable, schedule
from irc.native.rows import Domain, Leaf, Result, RowProgram, is_tensor, read
from irc.native.target import current
from irc.runtime.backends import ArrayType, Unsupported

if TYPE_CHECKING:
    from irc.ir import Node, Value
    from irc.runtime.kernels.registry import Kernel

Sizes = tuple[int, ...]


class _Compiled(NamedTuple):
    """Code, how many values it keeps, the bytes of an element of these, what an element costs; see `overwritable`."""

    code: Code
    kept: int
    unit: int
    cost: int
    over: list[tuple[int, int]]


_LEAST_ALONG = 8
"""Elements of a short row from which on it is reduced by itself, in a vector that is read in part."""

_SMALL_SCRATCH = 1 << 20
"""Bytes of scratch that no limit need be asked for."""

_NANOSECONDS = 0.03
"""About what an instruction takes for one element."""


class Rows:
    """Compiles a run of pointwise operators and operators that reduce rows.

    Args:
        nodes: the operators and constants.
        inputs: what they read.
        outputs: what they are to make.
    """

    def __init__(self, nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        self._nodes, self._inputs, self._outputs = nodes, inputs, outputs
        self._programs: dict[Any, tuple[RowProgram, str, bool]] = {}
        self._codes: dict[Any, _Compiled] = {}
        self._lock = Lock()

    def _made(self, operands: Sequence[ArrayType | None]) -> _RowKernel:
        kinds = [kind for kind in operands if kind is not None]
        shapes = [shape for _, shape in kinds]
        if len(kinds) < len(operands) or any(0 in shape for shape in shapes):
            raise Unsupported("there is no code for empty rows")
        key = tuple(dtype for dtype, _ in kinds), _pattern(shapes)
        with self._lock:
            found = self._programs.get(key)
            if found is None:
                program = read(self._nodes, self._inputs, kinds, self._outputs)
                found = self._programs[key] = program, listing(program), is_light(program)
        return _RowKernel(self, *found, shapes)

    def kernel(self, operands: Sequence[ArrayType | None]) -> Kernel:
        """The kernel for operands of these types. Raises `irc.runtime.backends.Unsupported`."""
        return self._made(operands).kernel()

    def overwrites(self, operands: Sequence[ArrayType]) -> list[tuple[int, int]]:
        """See `irc.runtime.backends.Backend.overwrites`. Raises `irc.runtime.backends.Unsupported`."""
        return [(result, operand) for result, operand in self._made(operands).over if operand < len(operands)]

    def code(self, program: RowProgram, text: str, shape: Shape, is_gathered: tuple[bool, ...]) -> _Compiled:
        """The code of ``program``, which is ``text``, for arrays that lie as ``shape`` says."""
        key = text, shape, is_gathered
        with self._lock:
            found = self._codes.get(key)
            if found is None:
                plan, name = schedule(program, is_gathered.__getitem__), "irc.rows"
                parts = (text, repr(shape), repr(is_gathered))
                code = process_jit().load(name, "\0".join(parts), lambda: emit(name, program, plan, shape, current()))
                unit = max((x.dtype.itemsize for x in plan.kept), default=1)
                found = self._codes[key] = _Compiled(code, len(plan.kept), unit, plan.cost, overwritable(program, plan))
            return found


class RowOperator:
    """Compiles ``node`` alone, an operator that reduces rows."""

    def __init__(self, node: Node) -> None:
        self._places = [i for i, value in enumerate(node.inputs) if is_tensor(value)]
        self._has_all = len(self._places) == len(node.inputs)
        self._rows = Rows([node], [node.inputs[i] for i in self._places], list(node.outputs))

    def kernel(self, operands: Sequence[ArrayType | None]) -> Kernel:
        """The kernel for operands of these types. Raises `irc.runtime.backends.Unsupported`."""
        places = self._places
        kernel = self._rows.kernel([operands[i] for i in places])
        if self._has_all:
            return kernel

        def run(*operands: Any, **out: Any) -> Any:
            return kernel(*[operands[i] for i in places], **out)

        return run


def _pattern(shapes: Sequence[Sizes]) -> tuple[tuple[int, ...], ...]:
    """Shapes with sizes numbered as they come: equal for shapes of which the same sizes are 1, and equal."""
    numbers = {1: 1}
    return tuple([tuple([numbers.setdefault(n, len(numbers) + 1) for n in shape]) for shape in shapes])


class _RowKernel:
    def __init__(self, owner: Rows, program: RowProgram, text: str, is_light: bool, shapes: Sequence[Sizes]) -> None:
        self._owner, self._program, self._text, self._is_light = owner, program, text, is_light
        shapes = [*shapes, *(x.shape for x in program.constants)]
        sizes = program.sizes(shapes)
        groups = program.domain.groups
        if groups and sizes[1] % groups:
            raise Unsupported("groups do not divide the channels")
        self._sizes = sizes
        self._where = [leaf.source for leaf in program.leaves]
        self._is_all = self._where == list(range(len(shapes)))
        self._leaf_shapes = [shapes[i] for i in self._where]
        self.results = [
            (tuple(sizes[place] if place else 1 for place in result.places), result.dtype) for result in program.results
        ]
        self._ordered = self._call()

    def _call(self) -> Call:
        """The call for arrays in C order."""
        program, domain = self._program, self._program.domain
        arrays = [
            _leaf_strides(domain, leaf, c_strides(shape, leaf.dtype))
            for leaf, shape in zip(program.leaves, self._leaf_shapes)
        ]
        for result, (shape, dtype) in zip(program.results, self.results):
            arrays.append(_result_strides(domain, result, shape, c_strides(shape, dtype)))
        sizes, arrays, reduced = _refined(domain, self._sizes, arrays)
        outer, inner = (
            space_of([sizes[a] for a in axes], [([sizes[a] for a in axes], [each[a] for a in axes]) for each in arrays])
            for axes in ([a for a in range(len(sizes)) if a not in reduced], sorted(reduced))
        )
        leaves = len(program.leaves)
        dtypes = [leaf.dtype for leaf in program.leaves] + [result.dtype for result in program.results]
        target = current()
        count = target.lanes(max(dtype.itemsize for dtype in dtypes))
        elements, rows = math.prod(inner.sizes), math.prod(outer.sizes)
        is_across = _is_across(outer, inner, dtypes, count)
        if is_across and elements < count and inner.strides[0][-1] == dtypes[0].itemsize:
            # Rows are short, and their elements neighbours.
            if elements < _LEAST_ALONG:
                if is_plain_sum(program):
                    raise Unsupported("NumPy adds short rows faster")
            elif is_scalar(program) and target.has_fma and dtypes[0].itemsize >= 4:
                is_across, count = False, max(8, 1 << (elements - 1).bit_length())
        if is_across and self._is_light:
            wider = count * target.vector_bytes // 16  # columns lie apart: more of each row is read at once
            count = wider if outer.sizes[-1] >= wider else count
        kinds: list[Access] = []
        for i, dtype in enumerate(dtypes):
            last = (outer if is_across else inner).strides[i][-1]
            step = Step.NONE if last == 0 else Step.DENSE if last == dtype.itemsize else Step.APART
            if i >= leaves and last == 0:
                step = Step.DENSE  # one element
            kinds.append(Access(dtype, step))
        steps = -(-inner.sizes[-1] // (1 if is_across else count))
        levels = 0 if steps <= 2 * BLOCK else 1 if steps <= BLOCK * BLOCK else 2
        is_long = elements > LONG
        shape = Shape(tuple(kinds), is_across, len(outer.sizes), len(inner.sizes), levels, count, is_long)
        gathered = tuple([kind.step is Step.APART for kind in kinds[:leaves]])
        code, kept, unit, cost, over = self._owner.code(program, self._text, shape, gathered)
        self.over = [(i, self._where[k]) for i, k in over if arrays[k] == arrays[leaves + i] and self._is_alone(i, k)]
        scratch_strides, row_bytes = _scratch(inner, is_across, count, unit)
        layout = [*outer.sizes, *inner.sizes, elements, row_bytes]
        for i in range(len(dtypes)):
            layout += [*outer.strides[i], *inner.strides[i]]
        layout += [0] * len(outer.sizes) + scratch_strides
        size = rows if not is_across else rows // outer.sizes[-1] * -(-outer.sizes[-1] // count)
        work = elements * rows * cost * _NANOSECONDS
        scratch = kept * row_bytes
        return Call.of(code, len(dtypes), layout, size, work, is_in_order=True, scratch=scratch)

    def _is_alone(self, result: int, leaf: int) -> bool:
        """Whether ``leaf`` has the element type of ``result``, and is all that is read of its input."""
        source, dtype = self._where[leaf], self._program.leaves[leaf].dtype
        return dtype == self._program.results[result].dtype and self._where.count(source) == 1

    def compute(self, arrays: Sequence[np.ndarray[Any, Any]], results: Sequence[np.ndarray[Any, Any]]) -> None:
        """Make ``results``, in C order, of the program's inputs."""
        taken = arrays if self._is_all else [arrays[i] for i in self._where]
        if self._ordered.run((*taken, *results)):
            return
        # Sums would have other bits if it depended on how operands lie in which order their elements are added.
        if not self._ordered.run((*map(np.ascontiguousarray, taken), *results)):
            raise AssertionError("results are arrays in C order")

    def kernel(self) -> Kernel:
        """Of one result, with ``out``; of several, a tuple, with several."""
        constants, compute, kinds = self._program.constants, self.compute, self.results
        ordered = self._ordered
        call, scratch = ordered.call, ordered.scratch
        is_simple = self._is_all and ordered.pieces == 1 and scratch <= _SMALL_SCRATCH

        types = [ArrayType(dtype, shape) for shape, dtype in kinds]

        def several(*operands: Any, out: Any = None) -> tuple[Any, ...]:
            results = arrays_for(types, out)
            compute((*operands, *constants), results)
            return results

        shape, dtype = kinds[0]

        def one(*operands: Any, out: Any = None) -> Any:
            if out is None:
                out = new_array(shape, dtype)
            if is_simple:
                own = (np.empty(scratch, BYTE),) if scratch else ()
                if call(*operands, *constants, out, *own):
                    return out
            compute((*operands, *constants), (out,))
            return out

        return one if len(kinds) == 1 else several


def _leaf_strides(domain: Domain, leaf: Leaf, strides: Sizes) -> list[int]:
    found = [0] * domain.rank
    for axis, place in leaf.places:
        found[place] = strides[axis]
    return found


def _result_strides(domain: Domain, result: Result, shape: Sizes, strides: Sizes) -> list[int]:
    found = [0] * domain.rank
    for place, size, stride in zip(result.places, shape, strides):
        if size != 1:
            found[place] = stride
    return found


def _refined(domain: Domain, sizes: Sizes, strides: list[list[int]]) -> tuple[list[int], list[list[int]], set[int]]:
    """The domain's sizes, each array's strides, and the axes that are reduced, with channels cut into groups."""
    reduced = {axis + domain.rank for axis in domain.axes}
    if not domain.groups:
        return list(sizes), strides, reduced
    each = sizes[1] // domain.groups
    cut = [[s[0], s[1] * each, *s[1:]] for s in strides]
    return [sizes[0], domain.groups, each, *sizes[2:]], cut, {axis + 1 for axis in reduced}


def _is_across(outer: Space, inner: Space, dtypes: Sequence[np.dtype[Any]], count: int) -> bool:
    """Whether lanes lie across rows: these are short, or neighbours lie there and not along them."""
    rows, length = outer.sizes[-1], math.prod(inner.sizes)
    along = across = False
    for i, dtype in enumerate(dtypes):
        if inner.strides[i][-1]:
            along = inner.strides[i][-1] == dtype.itemsize
            across = outer.strides[i][-1] == dtype.itemsize
            break
    if along:
        return length < count <= 2 * rows
    return rows > 1 and (across or rows >= inner.sizes[-1])


def _scratch(inner: Space, is_across: bool, count: int, unit: int) -> tuple[list[int], int]:
    """Of values that are kept, of ``unit`` bytes: the strides along inner axes, and bytes of a row."""
    sizes = list(inner.sizes)
    step = unit
    if is_across:
        step = unit * count
    else:
        sizes[-1] = -(-sizes[-1] // count) * count
    strides: list[int] = []
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return strides[::-1], step
