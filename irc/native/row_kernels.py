"""Kernels of programs over rows: code for how arrays lie in memory, and calls of it for their sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native.calls import Expected
from irc.native.jit import Code, process_jit
from irc.native.kernels import LONG, Call, Part, kernel_of
from irc.native.loops import Access, Space, Step, space_of
from irc.native.row_loops import BLOCK, Shape, emit
from irc.native.row_passes import described, is_light, is_plain_sum, is_scalar, overwritable, schedule
from irc.native.rows import Domain, Leaf, Result, RowProgram, read
from irc.native.target import current
from irc.runtime.array_memory import c_strides
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

    def _part(self, operands: Sequence[ArrayType]) -> _Part:
        shapes = [shape for _, shape in operands]
        if any(0 in shape for shape in shapes):
            raise Unsupported("there is no code for empty rows")
        key = tuple(dtype for dtype, _ in operands), _pattern(shapes)
        with self._lock:
            found = self._programs.get(key)
            if found is None:
                program = read(self._nodes, self._inputs, operands, self._outputs)
                found = self._programs[key] = program, described(program), is_light(program)
        return _Part(self, *found, shapes)

    def kernel(self, operands: Sequence[ArrayType]) -> Kernel:
        """The kernel for operands of these types. Raises `irc.runtime.backends.Unsupported`."""
        part = self._part(operands)
        return kernel_of(operands, part.program.constants, part.results, [part])

    def overwrites(self, operands: Sequence[ArrayType]) -> list[tuple[int, int]]:
        """See `irc.runtime.backends.Backend.overwrites`. Raises `irc.runtime.backends.Unsupported`."""
        part = self._part(operands)
        return [(i, k) for i, k in part.over if k < len(operands) and operands[k] == part.results[i]]

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


def _pattern(shapes: Sequence[Sizes]) -> tuple[tuple[int, ...], ...]:
    """Shapes with sizes numbered as they come: equal for shapes of which the same sizes are 1, and equal."""
    numbers = {1: 1}
    return tuple([tuple([numbers.setdefault(n, len(numbers) + 1) for n in shape]) for shape in shapes])


class _Part(Part):
    """All results of a kernel.

    Attributes:
        program: as given.
        results: the types of what it makes.
    """

    def __init__(self, owner: Rows, program: RowProgram, text: str, is_light: bool, shapes: Sequence[Sizes]) -> None:
        self._owner, self.program, self._text, self._is_light = owner, program, text, is_light
        shapes = [*shapes, *(x.shape for x in program.constants)]
        sizes = program.sizes(shapes)
        groups = program.domain.groups
        if groups and sizes[1] % groups:
            raise Unsupported("groups do not divide the channels")
        self._sizes = sizes
        takes = [leaf.source for leaf in program.leaves]
        self._leaf_shapes = [shapes[i] for i in takes]
        self.results = [
            ArrayType(result.dtype, tuple(sizes[place] if place else 1 for place in result.places))
            for result in program.results
        ]
        expected = [Expected(leaf.dtype, shape) for leaf, shape in zip(program.leaves, self._leaf_shapes)]
        expected += [Expected(*each) for each in self.results]
        super().__init__(self._call(expected), expected, takes, len(shapes), range(len(self.results)))

    def _call(self, expected: Sequence[Expected]) -> Call:
        """The call for arrays in C order."""
        program, domain = self.program, self.program.domain
        arrays = [
            _leaf_strides(domain, leaf, c_strides(shape, leaf.dtype.itemsize))
            for leaf, shape in zip(program.leaves, self._leaf_shapes)
        ]
        for result, (dtype, shape) in zip(program.results, self.results):
            arrays.append(_result_strides(domain, result, shape, c_strides(shape, dtype.itemsize)))
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
        self.over = [
            (i, program.leaves[k].source)
            for i, k in over
            if arrays[k] == arrays[leaves + i] and self._is_alone(i, program.leaves[k])
        ]
        scratch_strides, row_bytes = _scratch(inner, is_across, count, unit)
        layout = [*outer.sizes, *inner.sizes, elements, row_bytes]
        for i in range(len(dtypes)):
            layout += [*outer.strides[i], *inner.strides[i]]
        layout += [0] * len(outer.sizes) + scratch_strides
        size = rows if not is_across else rows // outer.sizes[-1] * -(-outer.sizes[-1] // count)
        work = elements * rows * cost * _NANOSECONDS
        return Call.of(code, expected, layout, size, work, scratch=kept * row_bytes)

    def _is_alone(self, result: int, leaf: Leaf) -> bool:
        """Whether ``leaf`` has the element type of ``result``, and is all that is read of its input."""
        read = [each for each in self.program.leaves if each.source == leaf.source]
        return leaf.dtype == self.program.results[result].dtype and read == [leaf]

    def otherwise(self, taken: Sequence[Array]) -> tuple[Call, Sequence[Array]]:
        # Sums would have other bits if it depended on how operands lie in which order their elements are added.
        return self.ordered, [np.asarray(x, order="C") for x in taken]


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
