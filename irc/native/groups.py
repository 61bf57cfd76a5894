"""Compilers of groups: code for how arrays lie in memory, and calls of it for their sizes.

Invariants:

- Code depends on element types, on which axes broadcast, and on where there are gaps, never on sizes: a group has few
  kinds of it, however many shapes it meets.
- Groups that differ in nothing but arrays of floats (`_text`) have their programs and code in common: a model with a
  hundred like blocks reads one. Whatever else a program may depend on, axes above all, is in the text.
- A kernel looks at its operands before it writes, and refuses those that it was not made for.
- Rows are added up in an order that does not depend on how operands lie.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from irc import ops
from irc.fuser.policy import is_anchor
from irc.ir import CONSTANT, Array, Tensor, is_none, parse_graph
from irc.native.backend import is_tensor
from irc.native.calls import Expected, call_of
from irc.native.inner_loops import straightened
from irc.native.jit import Code, process_jit
from irc.native.kernels import LEAST, Call, new_array
from irc.native.lanes import is_small
from irc.native.loops import Space, space_of
from irc.native.nests import BLOCK, Access, Shape, Step, emit
from irc.native.primitives import is_reduction, ordered
from irc.native.programs import (
    Domain,
    Leaf,
    Program,
    described,
    is_light,
    is_plain_sum,
    is_scalar,
    overwritable,
    read,
    schedule,
)
from irc.native.target import current
from irc.ops.algebra import Apply, maximum, minimum
from irc.runtime.array_memory import c_strides
from irc.runtime.backends import ArrayType, Unsupported
from irc.runtime.bounds import CURRENT
from irc.runtime.execution import fail
from irc.runtime.kernels.registry import takes_out
from irc.runtime.kernels.support import WORTH_COPYING
from irc.runtime.lowering import runtime_constant
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from irc.ir import Node, Value
    from irc.runtime.kernels.registry import Kernel
    from irc.runtime.lowering import Bound

Sizes = tuple[int, ...]

LONG = 1 << 22
"""Elements for one number of a range, from which on its loops pause."""

MOST_LAYOUTS = 64
"""Ways of lying in memory that one kernel keeps calls for."""

_EXTREMES = frozenset([maximum, minimum])
"""Of zeros of either sign NumPy takes the second one, but of small floats the first."""

_LEAST_ALONG = 8
"""Elements of a short row from which on it is reduced by itself, in a vector that is read in part."""

_NANOSECONDS = 0.03
"""About what an instruction takes for one element."""


class Group:
    """Compiles a run of pointwise operators and operators that reduce rows.

    Args:
        nodes: the operators and constants.
        inputs: what they read.
        outputs: what they are to make.

    Attributes:
        constants: its arrays.
        text: equal for groups that differ in nothing but arrays of floats; None if there is no short one.
    """

    def __init__(self, nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        arrays: dict[Value, Array] = {}
        for node in nodes:
            tensor = node.attributes.get("value") if node.kind == CONSTANT and not is_none(node.output) else None
            if isinstance(tensor, Tensor) and np.ndim(tensor.numpy()):
                arrays[node.output] = np.ascontiguousarray(tensor.numpy())
        self.constants = list(arrays.values())
        self._run = nodes, [*inputs, *arrays], outputs
        self.text = text = _text(*self._run)
        self._programs = _Programs() if text is None else _PROGRAMS.setdefault(text, _Programs())
        self._latest: tuple[Sequence[ArrayType], list[_Part]] = (), []

    def _parts(self, operands: Sequence[ArrayType]) -> list[_Part]:
        """What makes the results for operands of these types. Raises `irc.runtime.backends.Unsupported`."""
        known, parts = self._latest
        if known != operands or not parts:
            types = [*operands, *(ArrayType(x.dtype, x.shape) for x in self.constants)]
            parts = [_Part(each, [shape for _, shape in types]) for each in self._programs.read(*self._run, types)]
            self._latest = operands, parts
        return parts

    def kernel(self, operands: Sequence[ArrayType]) -> Kernel:
        """The kernel for operands of these types. Raises `irc.runtime.backends.Unsupported`."""
        parts = self._parts(operands)
        used = max((i for part in parts for i in part.takes), default=-1) + 1
        constants = self.constants[: max(0, used - len(operands))]  # axes are no operands of code
        made = kernel_of(operands, constants, self.results(operands), [x for x in parts if x.has_elements])
        layouts = parts[0].program.layouts if parts else None
        if layouts is None:
            return made
        from irc.native.torch_operators import laid_out

        return laid_out(layouts, self.constants, made)

    def results(self, operands: Sequence[ArrayType]) -> list[ArrayType]:
        """The types of the results for operands of these types."""
        found = {i: kind for part in self._parts(operands) for i, kind in zip(part.program.makes, part.results)}
        return [found[i] for i in range(len(found))]

    def calls(self, operands: Sequence[Expected], exactly: bool = False) -> list[GroupCall]:
        """The calls that make all results, in C order, of operands that lie as is said.

        Raises `irc.runtime.backends.Unsupported`, also if they are to be made ``exactly``, and are not.
        """
        parts = self._parts([ArrayType(x.dtype, tuple(x.shape)) for x in operands])
        is_ordered = all(x.strides is None for x in operands)
        if not is_ordered and any(part.program.layouts is not None for part in parts):
            raise Unsupported("results lie as operands do")
        if exactly and not all(part.is_exact for part in parts):
            raise Unsupported("NumPy rounds otherwise")
        strides = [*[x.strides for x in operands], *[None for _ in self.constants]]
        return [GroupCall(part.call(strides), part.takes, part.program.makes) for part in parts if part.has_elements]

    def overwrites(self, operands: Sequence[ArrayType]) -> list[tuple[int, int]]:
        """See `irc.runtime.backends.Backend.overwrites`. Raises `irc.runtime.backends.Unsupported`."""
        parts = self._parts(operands)
        if len(parts) != 1 or parts[0].program.layouts is not None:  # several: one shape is made after another
            return []
        (part,) = parts
        return [(i, k) for i, k in part.over if k < len(operands) and operands[k] == part.results[i]]


class GroupCall(NamedTuple):
    """A call that makes results of a group.

    Attributes:
        call: of operands, then results, in C order.
        operands: positions among the group's operands, and then its constants.
        results: positions of the group's results.
    """

    call: Call
    operands: Sequence[int]
    results: Sequence[int]


class _Compiled(NamedTuple):
    """Code, the number and element size of values it keeps, the cost an element; see `overwritable`."""

    code: Code
    kept: int
    unit: int
    cost: int
    over: list[tuple[int, int]]


class _Known:
    """A program, and the code for it."""

    def __init__(self, program: Program, lock: RLock) -> None:
        self.program, self._lock = program, lock
        self.reduces = any(map(is_reduction, ordered(program.roots)))
        self.is_light, self.is_scalar, self.is_plain_sum = is_light(program), is_scalar(program), is_plain_sum(program)
        applied = [x.primitive for x in ordered(program.roots) if isinstance(x, Apply)]
        are_exact = not _EXTREMES.intersection(applied) or not any(is_small(leaf.dtype) for leaf in program.leaves)
        self.is_exact = are_exact and all(primitive.ulp <= 0.5 for primitive in applied)
        self._text = described(program)
        self._codes: dict[Any, _Compiled] = {}

    def code(self, shape: Shape) -> _Compiled:
        """The code for arrays that lie as ``shape`` says."""
        with self._lock:
            found = self._codes.get(shape)
            if found is None:
                program, name = self.program, "irc.group"
                plan = schedule(program, lambda leaf: shape.arrays[leaf].step is Step.APART)
                text = f"{self._text}\0{shape!r}"
                code = process_jit().load(name, text, lambda: emit(name, program, plan, shape, current()))
                unit = max((x.dtype.itemsize for x in plan.kept), default=1)
                over = overwritable(program, plan)
                found = self._codes[shape] = _Compiled(code, len(plan.kept), unit, plan.cost, over)
            return found


class _Programs:
    """The programs of groups of one text, by the types of operands."""

    def __init__(self) -> None:
        self._known: dict[Any, list[_Known]] = {}
        self._lock = RLock()

    def read(
        self, nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value], types: Sequence[ArrayType]
    ) -> list[_Known]:
        """Those of a group, for operands of these types."""
        key = tuple([dtype for dtype, _ in types]), _pattern([shape for _, shape in types])
        with self._lock:
            found = self._known.get(key)
            if found is None:
                found = [_Known(program, self._lock) for program in read(nodes, inputs, types, outputs)]
                self._known[key] = found
            return found


_PROGRAMS: WeakValueDictionary[str, _Programs] = WeakValueDictionary()


def _text(nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value]) -> str | None:
    """All of a group but arrays as a text: None if there is something in it that has no short one."""
    numbers = {value: i for i, value in enumerate(inputs)}
    words: list[Any] = [len(inputs)]
    for node in nodes:
        if node.kind == CONSTANT and node.output in numbers:
            continue
        operands: list[Any] = []
        for value in node.inputs:
            constant, number = value.made_by(CONSTANT), numbers.get(value)
            content = _UNKNOWN if number is None else ""
            if constant is not None:  # of which axes may be read, also if it is an input
                content = _plain(constant.attributes.get("value"), is_input=number is not None)
            operands.append((number, is_tensor(value), is_none(value), content))
        attributes = [(name, _plain(value)) for name, value in sorted(node.attributes.items())]
        words.append((node.kind, node.version, operands, attributes, len(node.outputs)))
        numbers.update((value, len(numbers)) for value in node.outputs)
    found = repr((words, [numbers[value] for value in outputs]))
    return None if repr(_UNKNOWN) in found else found


_UNKNOWN = "?irc"


def _plain(value: Any, is_input: bool = False) -> Any:
    """A number, word, list of these or tensor; else `_UNKNOWN`. Floats that are inputs are not read."""
    if isinstance(value, Tensor):
        array = value.numpy()
        is_read = array.ndim == 0 or array.dtype.kind in "biu"
        return (array.dtype.str, array.shape, array.tobytes()) if is_read else "" if is_input else _UNKNOWN
    if isinstance(value, list | tuple):
        return list(map(_plain, value))  # type: ignore[reportUnknownArgumentType]
    return value if value is None or isinstance(value, bool | int | float | complex | str) else _UNKNOWN


def _pattern(shapes: Sequence[Sizes]) -> tuple[Sizes, ...]:
    """Shapes with sizes numbered as they come: equal for shapes of which the same sizes are 1, and equal."""
    numbers = {1: 1}
    return tuple([tuple([numbers.setdefault(n, len(numbers) + 1) for n in shape]) for shape in shapes])


class _Part:
    """The results of a kernel that a program makes, by one call.

    Attributes:
        program: as given.
        ordered: the call for arrays in C order, if there is anything to be made.
        takes: the positions of what it takes, among operands and then constants.
        results: the types of what it makes.
        has_elements: whether there is anything to be made.
        over: pairs (result, operand): see `Group.overwrites`.
        is_exact: whether NumPy's results have the same bits.
    """

    def __init__(self, known: _Known, shapes: Sequence[Sizes]) -> None:
        self._known, self.program, self.is_exact = known, known.program, known.is_exact
        program, domain = self.program, self.program.domain
        self._sizes = sizes = program.sizes(shapes)
        self.has_elements = 0 not in sizes
        if not self.has_elements and known.reduces:
            raise Unsupported("there is no code for empty rows")
        if domain.groups and sizes[1] % domain.groups:
            raise Unsupported("groups do not divide the channels")
        self.takes = [leaf.source for leaf in program.leaves]
        self.results = [
            ArrayType(result.dtype, tuple(sizes[place] if place else 1 for place in result.places))
            for result in program.results
        ]
        self._made = [Expected(*each) for each in self.results]
        self._operands = [Expected(leaf.dtype, shapes[leaf.source]) for leaf in program.leaves]
        self._layouts: dict[Any, Call] = {}
        self.over: list[tuple[int, int]] = []
        if self.has_elements:
            self.ordered = self._call(self._operands)

    def in_order(self, count: int) -> Callable[..., bool]:
        """`ordered` as a function of ``count`` operands and constants, then the results."""
        call, takes = self.ordered.call, self.takes
        if takes == list(range(count)):
            return call
        taken = itemgetter(*takes, slice(count, None))

        def reordered(*arrays: Any) -> bool:
            *own, made = taken(arrays)
            return call(*own, *made)

        return reordered

    def _call(self, operands: Sequence[Expected]) -> Call:
        """The call for arrays that lie as is said."""
        known, program, domain = self._known, self.program, self.program.domain
        expected = [*operands, *self._made]
        places = [leaf.places for leaf in program.leaves] + [tuple(enumerate(x.places)) for x in program.results]
        arrays: list[list[int]] = []
        for (dtype, shape, strides), where in zip(expected, places):
            steps = c_strides(shape, dtype.itemsize) if strides is None else strides
            along = [0] * domain.rank
            for axis, place in where:
                if place:
                    along[place] = steps[axis]
            arrays.append(along)
        sizes, arrays, within = _refined(domain, self._sizes, arrays)
        outer, inner = (
            space_of([sizes[a] for a in axes], [([sizes[a] for a in axes], [each[a] for a in axes]) for each in arrays])
            for axes in ([a for a in range(len(sizes)) if a not in within], sorted(within))
        )
        if not known.reduces:
            outer = Space((), ((),) * len(arrays))
        leaves, dtypes, target = len(operands), [x.dtype for x in expected], current()
        count = target.lanes(max(dtype.itemsize for dtype in dtypes))
        elements, rows = math.prod(inner.sizes), math.prod(outer.sizes)
        is_across = known.reduces and _is_across(outer, inner, dtypes, count)
        if is_across and elements < count and inner.strides[0][-1] == dtypes[0].itemsize:
            # Rows are short, and their elements neighbours.
            if elements < _LEAST_ALONG:
                if known.is_plain_sum:
                    raise Unsupported("NumPy adds short rows faster")
            elif known.is_scalar and target.has_fma and dtypes[0].itemsize >= 4:
                is_across, count = False, max(8, 1 << (elements - 1).bit_length())
        if is_across and known.is_light:
            wider = count * target.vector_bytes // 16  # columns lie apart: more of each row is read at once
            count = wider if outer.sizes[-1] >= wider else count
        kinds: list[Access] = []
        for i, dtype in enumerate(dtypes):
            last = (outer if is_across else inner).strides[i][-1]
            step = Step.NONE if last == 0 else Step.DENSE if last == dtype.itemsize else Step.APART
            kinds.append(Access(dtype, Step.DENSE if i >= leaves and last == 0 else step))  # of one element
        steps = -(-inner.sizes[-1] // (1 if is_across else count))
        levels = 0 if steps <= 2 * BLOCK or not known.reduces else 1 if steps <= BLOCK * BLOCK else 2
        is_long = (elements if known.reduces else elements // inner.sizes[0]) > LONG
        shape = Shape(tuple(kinds), is_across, len(outer.sizes), len(inner.sizes), levels, count, is_long)
        code, kept, unit, cost, over = known.code(shape)
        if operands is self._operands:
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
        size = rows if known.reduces else inner.sizes[0]
        if is_across:
            size = rows // outer.sizes[-1] * -(-outer.sizes[-1] // count)
        work = elements * rows * cost * _NANOSECONDS
        return Call.of(code, expected, layout, size, work, scratch=kept * row_bytes)

    def call(self, strides: Sequence[Sequence[int] | None]) -> Call:
        """The call for operands and constants with these strides; None: they lie in C order."""
        taken = [strides[i] for i in self.takes]
        if not any(taken):
            return self.ordered
        lie_across = [
            math.prod(x.shape) >= WORTH_COPYING and steps is not None and steps[-1] not in (0, x.dtype.itemsize)
            for x, steps in zip(self._operands, taken)
        ]
        if self._known.reduces or any(lie_across):
            raise Unsupported("operands are copied first")
        return self._call([each._replace(strides=steps) for each, steps in zip(self._operands, taken)])

    def _is_alone(self, result: int, leaf: Leaf) -> bool:
        """Whether ``leaf`` has the element type of ``result``, and is all that is read of its input."""
        read = [each for each in self.program.leaves if each.source == leaf.source]
        return leaf.dtype == self.program.results[result].dtype and read == [leaf]

    def run(self, arrays: Sequence[Array], results: Sequence[Array], are_suited: Callable[[], bool]) -> bool:
        """Make results of the operands and constants; False if these are not as ``are_suited`` asks."""
        taken = [arrays[i] for i in self.takes]
        made = [results[i] for i in self.program.makes]
        if self.ordered.run((*taken, *made)):
            return True
        if not are_suited():
            return False
        # As arrays of NumPy's own class and types: there are two of 64 bits.
        taken, made = (
            [np.asarray(x).view(each.dtype) for x, each in zip(arrays, expected)]
            for arrays, expected in ((taken, self._operands), (made, self._made))
        )
        if self._known.reduces:
            call, taken = self.ordered, [np.asarray(x, order="C") for x in taken]
        else:
            taken = [straightened(x) for x in taken]
            call = self._strided_call(tuple([x.strides for x in taken]))
        if not call.run((*taken, *made)):
            raise AssertionError("the call was made for these arrays")
        return True

    def _strided_call(self, strides: tuple[Sizes, ...]) -> Call:
        """The call for operands with these strides."""
        call = self._layouts.get(strides)
        if call is None:
            if len(self._layouts) >= MOST_LAYOUTS:
                self._layouts = {}
            operands = [each._replace(strides=steps) for each, steps in zip(self._operands, strides)]
            call = self._layouts[strides] = self._call(operands)
        return call


@cache
def group_of_text(text: str) -> Group:
    """The operators of the graph with this text."""
    graph = parse_graph(text)
    return Group(list(graph.nodes), graph.inputs, graph.outputs)


def suiting(types: Sequence[ArrayType]) -> Callable[..., bool]:
    """A function that says whether operands are arrays of these types."""
    are_in_order = call_of(0, [Expected(*each) for each in types], (), 0, releases=False)
    kinds = list(types)

    def suits(*given: Any) -> bool:
        return are_in_order(*given) or [ArrayType(x.dtype, x.shape) if is_array(x) else None for x in given] == kinds

    return suits


def kernel_of(
    operands: Sequence[ArrayType], constants: Sequence[Array], results: Sequence[ArrayType], parts: Sequence[_Part]
) -> Kernel:
    """The kernel that makes ``results`` by ``parts``: see `irc.native.backend.Compiler`."""
    sizes = [dtype.itemsize * math.prod(shape) for dtype, shape in results]
    are_small = all(0 < size < LEAST for size in sizes)  # made in less time than it takes to look at their sizes
    is_simple = len(parts) == 1 and parts[0].ordered.is_simple and set(parts[0].takes) >= set(range(len(operands)))
    call = parts[0].in_order(len(operands) + len(constants)) if is_simple else _refuses
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


def _refined(domain: Domain, sizes: Sizes, strides: list[list[int]]) -> tuple[list[int], list[list[int]], set[int]]:
    """The domain's sizes, each array's strides and the reduced axes, with channels cut into groups."""
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


class Anchored:
    """Compiles an epilogue to a convolution or matrix product that the interpreter's kernel computes.

    Args:
        nodes: as of `Group`; one of them is not a pointwise operator.
        inputs: likewise.
        outputs: likewise.
        bound: has the interpreter's kernels.

    Attributes:
        anchor: the convolution or product.
        inputs: as given.
        constants: what else the anchor takes.
        rest: what follows; its last operand is the anchor's result.
        used: the positions of the inputs that it takes before that.

    Raises:
        Unsupported: there are several such operators, their result is used elsewhere, or another node makes what they
            take.
    """

    def __init__(self, nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value], bound: Bound) -> None:
        anchors = [node for node in nodes if is_anchor(node)]
        self.anchor = anchors[0]
        if len(anchors) > 1:
            raise Unsupported(f"there are {len(anchors)} products or convolutions in the group")
        makers = {node for node in nodes if node.kind != CONSTANT}
        if any(value.node in makers for value in self.anchor.inputs):
            raise Unsupported(f"what {self.anchor.kind} takes is made in the group")
        self._made = self.anchor.output
        if self._made in outputs:
            raise Unsupported(f"the result of {self.anchor.kind} itself is used elsewhere")
        self.inputs = inputs
        used = {value for node in nodes if node is not self.anchor for value in node.inputs}
        rest = [x for x in nodes if x is not self.anchor and (x.kind != CONSTANT or x.output in used)]
        self.used = [i for i, value in enumerate(inputs) if value in used]
        self.rest = Group(rest, [*(inputs[i] for i in self.used), self._made], outputs)
        semantics = [ops.semantics(node.kind, node.version) for node in rest if node.kind != CONSTANT]
        if not all(each is None or each.broadcasts for each in semantics):
            raise Unsupported("attributes align operands with a result whose shape is not known before")
        self._kernel = bound.kernel(self.anchor)
        self.constants = {
            node.output: runtime_constant(node.attributes.get("value"), in_order=False)
            for node in nodes
            if node.kind == CONSTANT and self.anchor in node.output.iter_users()
        }

    def kernel(self, operands: Sequence[ArrayType]) -> Kernel:
        """The kernel for operands of these types. Raises `irc.runtime.backends.Unsupported`."""
        places = {value: i for i, value in enumerate((*self.inputs, *self.constants))}
        first = self.anchor.inputs[0]
        dtype = self.constants[first].dtype if first in self.constants else operands[places[first]].dtype
        used, rest = self.used, self.rest
        others = [operands[i] for i in used]
        rest.results([*others, ArrayType(dtype, (1,))])  # or it raises
        constants = tuple(self.constants.values())
        taken = itemgetter(*[places[value] for value in self.anchor.inputs])
        anchor, compute, suits = self.anchor, self._kernel, suiting(operands)
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
        """See `irc.runtime.backends.Backend.overwrites`; the product is written before operands are read."""
        return []
