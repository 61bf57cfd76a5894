"""Groups as programs: scalar expressions over the elements of arrays, and reductions of these.

A *program* makes results over one *domain*, a shape. Its expressions (`irc.ops.algebra`) come from the scalar semantics
that the operators' records state, and from `irc.native.row_operators`, whose `REDUCERS` reduce the domain's *rows*:
what differs along some of its axes alone. Values that do not vary along these axes are *row values*.

Invariants:

- A program without reductions has one row, which is all of the domain; its results have the domain's shape. A group of
  pointwise operators has one program for each shape of its results.
- A result varies along all axes of the domain, or, if it is a row value, along all but the rows', so that each of its
  elements is written once.
- A program depends on element types, on which sizes are 1 and on which are equal, never on sizes themselves.

It is computed in *passes* over each row, of which there is one more than reductions depend on each other. A value that
varies along rows and is needed in several passes is computed anew in each if that is cheap, else kept in a buffer of
one row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc import ops
from irc.ir import CONSTANT, DType, Tensor, is_none
from irc.native.backend import is_tensor
from irc.native.functions import FUNCTIONS
from irc.native.lanes import computed, is_small, is_supported
from irc.native.primitives import COMPOUNDS, PRIMITIVES, ROUND, Rounded, is_reduction, listing, ordered
from irc.native.row_operators import COUNT, EXP_OF_NEGATIVE, REDUCERS, ROW_OPERATORS, SUM, Call, Form
from irc.ops import algebra
from irc.ops.algebra import CAST, AnyDType, Apply, Constant, Expression, Operand, Primitive, fold, multiply, walk
from irc.ops.axes import row_axes
from irc.ops.onnx.pointwise import swish
from irc.ops.scalar import ScalarSemantics, trace
from irc.runtime.backends import ArrayType, Unsupported
from irc.runtime.kernels.support import broadcast_shape, numpy_dtype

if TYPE_CHECKING:
    from irc.ir import Node, Value
    from irc.native.torch_operators import Layouts

Shape = tuple[int, ...]


class Operation(NamedTuple):
    """A pointwise operator of a group.

    Attributes:
        result: the value that it makes.
        operands: what it takes; None where one is absent.
        expressions: the first is of the operands; each other one of the result so far and the next operand.
        compound: the function of the library that computes it whole; empty: none does.
        dtype: the result's element type.
        is_shaped_like_first: whether the other operands have one element, whatever their rank.
        is_of_one_shape: whether attributes say how operands of several shapes are aligned.
        keeps_layout: whether the result lies as torch lays it out: in C order if all operands do.
    """

    result: Value
    operands: tuple[Value | None, ...]
    expressions: tuple[Expression, ...]
    compound: str
    dtype: AnyDType
    is_shaped_like_first: bool = False
    is_of_one_shape: bool = False
    keeps_layout: bool = False


class Leaf(NamedTuple):
    """An array that is read.

    Attributes:
        source: which one of the program's inputs it is.
        dtype: its element type.
        places: (axis of the array, axis of the domain, counted from its end), for each axis that is not of one element.
    """

    source: int
    dtype: AnyDType
    places: tuple[tuple[int, int], ...]


class Result(NamedTuple):
    """A result: an expression, and an array with these domain axes; 0 for axes of one element."""

    expression: Expression
    dtype: AnyDType
    places: Shape


class Domain(NamedTuple):
    """What a program is over.

    Attributes:
        rank: its number of axes.
        axes: those along which rows lie, counted from the end, in order.
        groups: into how many groups the second axis is cut, 0: it is not. Rows lie within groups.
    """

    rank: int
    axes: Shape
    groups: int = 0


class Program(NamedTuple):
    """What makes some results of a group.

    Attributes:
        domain: as it says.
        leaves: what `Operand` numbers.
        results: what is made.
        makes: which results of the group these are.
        layouts: how torch lays out the group's results; None: in C order.
    """

    domain: Domain
    leaves: list[Leaf]
    results: list[Result]
    makes: list[int]
    layouts: Layouts | None = None

    @property
    def roots(self) -> list[Expression]:
        """The results' expressions."""
        return [x.expression for x in self.results]

    def sizes(self, shapes: Sequence[Shape]) -> Shape:
        """The domain's sizes, for the shapes of all inputs."""
        found = [1] * self.domain.rank
        for leaf in self.leaves:
            for axis, place in leaf.places:
                found[place] = shapes[leaf.source][axis]
        return tuple(found)

    def varying(self) -> set[int]:
        """The ids of the values that vary along rows."""
        found: set[int] = set()
        for node in ordered(self.roots):
            is_varying = False
            if isinstance(node, Operand):
                is_varying = any(place in self.domain.axes for _, place in self.leaves[node.index].places)
            elif isinstance(node, Apply) and not is_reduction(node):
                is_varying = any(id(x) in found for x in node.arguments)
            if is_varying:
                found.add(id(node))
        return found


class _Made(NamedTuple):
    """What a member of the group makes: as `Result`, with the shape."""

    expression: Expression
    dtype: AnyDType
    shape: Shape
    places: Shape


def read(
    nodes: Sequence[Node], inputs: Sequence[Value], types: Sequence[ArrayType], outputs: Sequence[Value]
) -> list[Program]:
    """The programs of ``nodes`` on operands of these types; `Unsupported` if there is no code for them."""
    reader = Reader(nodes, inputs, types)
    shapes = [reader.made(value).shape for value in outputs]
    found: list[Program] = []
    if reader.domain is not None or len(set(shapes)) == 1:
        found.append(reader.program(outputs, range(len(outputs))))
        shapes = []
    for shape in dict.fromkeys(shapes):
        makes = [i for i, other in enumerate(shapes) if other == shape]
        wanted = {outputs[i] for i in makes}
        needed: list[Node] = []
        for node in reversed(nodes):
            if node.kind == CONSTANT or wanted.intersection(node.outputs):
                needed.append(node)
                wanted.update(node.inputs)
        found.append(Reader(needed[::-1], inputs, types).program([outputs[i] for i in makes], makes))
    layouts = reader.layouts(outputs) if reader.domain is None else None  # else operands have to be in C order
    return [program._replace(layouts=layouts) for program in found]


class Reader:
    """What is known of a group's values while its operators are read.

    Attributes:
        dtypes: the element types of the arrays among them.
        numbers: constants of one element.
        domain: what is reduced; None: nothing is so far.
    """

    def __init__(self, nodes: Sequence[Node], inputs: Sequence[Value], types: Sequence[ArrayType]) -> None:
        self.dtypes: dict[Value, AnyDType] = {}
        self.numbers: dict[Value, complex] = {}
        self._operations: list[Operation] = []
        self.domain: Domain | None = None
        self._inputs = inputs
        self._shapes: dict[Value, Shape] = {}
        self._made: dict[Value, _Made] = {}
        self._leaves: dict[Leaf, Operand] = {}
        self._reduced: Shape = ()
        for value, (dtype, shape) in zip(inputs, types, strict=True):
            check_dtype(dtype)
            self.dtypes[value], self._shapes[value] = dtype, shape
        for node in nodes:
            if node.kind == CONSTANT:
                self._add_number(node)
            elif node.kind in ROW_OPERATORS:
                self._reduce(node)
            else:
                self._apply(self._operation(node))

    def shape(self, value: Value) -> Shape:
        """Of an array."""
        return self._made[value].shape if value in self._made else self._shapes[value]

    def made(self, value: Value) -> _Made:
        """What an operator of the group makes. Raises `Unsupported` if none makes ``value``."""
        if value not in self._made:
            raise Unsupported("a result is made by no operator of the group")
        return self._made[value]

    def program(self, outputs: Sequence[Value], makes: Sequence[int]) -> Program:
        """The program that makes ``outputs``, which are these of the group's results."""
        made = [self.made(value) for value in outputs]
        results = [
            Result(x.expression, x.dtype, tuple(place if size != 1 else 0 for place, size in zip(x.places, x.shape)))
            for x in made
        ]
        sizes = made[0].shape if self.domain is None else self._reduced
        whole = Domain(len(sizes), tuple(range(-len(sizes), 0)))
        domain = self.domain or whole
        if not any(is_reduction(node) for node in ordered([x.expression for x in results])):
            domain = whole
        found = Program(domain, list(self._leaves), results, list(makes))
        for leaf in found.leaves:
            for axis, place in leaf.places:
                if not -domain.rank <= place < 0 or self._shapes[self._inputs[leaf.source]][axis] != sizes[place]:
                    raise Unsupported("shapes differ from that of what is reduced")
        varying = found.varying()
        kept = {place for place in whole.axes if sizes[place] != 1}
        for x in made:
            covered = {place for place, size in zip(x.places, x.shape) if size != 1}
            if covered != (kept if id(x.expression) in varying else kept.difference(domain.axes)):
                raise Unsupported("a result has fewer axes than what is reduced")
        return found

    def layouts(self, outputs: Sequence[Value]) -> Layouts | None:
        """How torch lays out ``outputs``."""
        if not any(operation.keeps_layout for operation in self._operations):
            return None
        from irc.native.torch_operators import layouts_of

        return layouts_of(self._operations, self._inputs, outputs)

    def _add_number(self, node: Node) -> None:
        """Add a constant of one element; others are inputs, and what is not an array operators take as it is."""
        tensor = node.attributes.get("value")
        if not is_none(node.output) and isinstance(tensor, Tensor) and node.output not in self.dtypes:
            array = np.asarray(tensor.numpy())
            check_dtype(array.dtype)
            self.numbers[node.output] = array.astype(computed(array.dtype)).item()
            self.dtypes[node.output], self._shapes[node.output] = array.dtype, ()

    def _leaf(self, value: Value, places: Sequence[int]) -> Expression:
        """The input ``value`` whose axes are these of the domain."""
        dtype = self.dtypes[value]
        if value in self.numbers:
            return Constant(self.numbers[value], computed(dtype))
        shape = self._shapes[value]
        where = tuple((axis, places[axis - len(shape)]) for axis, size in enumerate(shape) if size != 1)
        if any(place == 0 for _, place in where):
            raise Unsupported("an operand has an axis that is reduced")
        leaf = Leaf(self._inputs.index(value), dtype, where)
        return self._leaves.setdefault(leaf, Operand(len(self._leaves), computed(dtype)))

    # -- pointwise operators ---------------------------------------------------

    def _operation(self, node: Node) -> Operation:
        if len(node.outputs) != 1:
            raise Unsupported(f"there is no code for {node.kind}")
        if node.kind.startswith("aten::"):
            from irc.native.torch_operators import torch_operation

            return torch_operation(self, node)
        scalar = ops.semantics(node.kind, node.version) if node.kind.startswith("onnx::") else None
        if scalar is None:
            raise Unsupported(f"there is no code for {node.kind}")
        operands = tuple(None if is_none(value) else value for value in node.inputs)
        if not all(x is None or x in self.dtypes for x in operands):
            raise Unsupported("an operand is not an array")
        dtypes = [None if x is None else self.dtypes[x] for x in operands]
        expressions, compound, dtype = _semantics(self, scalar, node, operands, dtypes)
        is_of_one_shape, is_shaped_like_first = not scalar.broadcasts, node.kind in _SCALAR_OPERANDS
        made = Operation(node.output, operands, expressions, compound, dtype, is_shaped_like_first, is_of_one_shape)
        return checked(made)

    def _aligned(self, values: Sequence[Value], shape: Shape) -> Shape:
        """The domain's axes of a result of ``shape`` that pointwise operators make of ``values``."""
        found: dict[int, int] = {}
        is_usual = True
        for value in values:
            if value not in self._made:
                continue
            made = self._made[value]
            for i, (size, place) in enumerate(zip(made.shape, made.places)):
                if size == 1:
                    continue
                axis = i - len(made.shape)
                is_usual &= place == axis
                if found.setdefault(axis, place) != place:
                    raise Unsupported("operands lie along different axes")
        return tuple(found.get(axis, axis if is_usual else 0) for axis in range(-len(shape), 0))

    def _apply(self, operation: Operation) -> None:
        present = [value for value in operation.operands if value is not None]
        counted = present[:1] if operation.is_shaped_like_first else present
        if any(math.prod(self.shape(value)) != 1 for value in present[len(counted) :]):
            raise Unsupported("a bound has several elements")
        shape: Shape = ()
        for value in counted:
            shape = broadcast(shape, self.shape(value))
        if operation.is_of_one_shape and any(self.shape(value) != shape for value in present):
            raise Unsupported("attributes align operands of different shapes")
        places = self._aligned(counted, shape)
        taken: list[Expression | None] = []
        for value in operation.operands:
            if value is None:
                taken.append(None)
            elif value in self._made:
                taken.append(self._made[value].expression)
            else:
                taken.append(self._leaf(value, places))
        self._operations.append(operation)
        self.dtypes[operation.result] = operation.dtype
        self._made[operation.result] = _Made(applied(operation, taken), operation.dtype, shape, places)

    # -- operators that reduce rows --------------------------------------------

    def _reduce(self, node: Node) -> None:
        operands = [value if is_tensor(value) else None for value in node.inputs]
        first = operands[0]
        assert first is not None
        shape = self.shape(first)
        rank = len(shape)
        usual = tuple(range(-rank, 0))
        if first in self._made and self._made[first].places != usual:
            raise Unsupported("what is reduced lies along other axes")

        def operand(index: int, is_channel: bool) -> Expression:
            value = operands[index]
            assert value is not None
            own = self._made.get(value)
            own_shape = self.shape(value)
            if is_channel:
                if own is not None:
                    raise Unsupported("parameters of channels are computed")
                return self._leaf(value, (1 - rank,))
            if own is not None and own.places != tuple(range(-len(own.shape), 0)):
                raise Unsupported("operands lie along different axes")
            if broadcast(own_shape, shape) != shape:
                raise Unsupported("an operand does not broadcast to the first")
            return self._leaf(value, usual[rank - len(own_shape) :]) if own is None else own.expression

        dtypes = [None if x is None else self.dtypes[x] for x in operands]
        shapes = [() if x is None else self.shape(x) for x in operands]
        rows = row_axes(node, rank)
        if rows is None:
            raise Unsupported(f"it is not known which elements {node.kind} reduces")
        results = ROW_OPERATORS[node.kind](Call(node, dtypes, shapes, operand))
        if rows.groups and shape[1] % rows.groups:
            raise Unsupported("groups do not divide the channels")
        domain = Domain(rank, *rows)
        if self.domain is not None and (self.domain, self._reduced) != (domain, shape):
            raise Unsupported("rows lie along different axes")
        self.domain, self._reduced = domain, shape
        for value, found in zip(node.outputs, results):
            check_dtype(found.dtype)
            places, size = usual, shape
            if found.form is not Form.FULL:
                places = tuple(0 if place in domain.axes else place for place in usual)
                size = tuple(n if place else 1 for n, place in zip(shape, places))
            if found.form is Form.SQUEEZED:
                size = tuple(n for n, place in zip(shape, places) if place)
                places = tuple(place for place in places if place)
            check_expression(found.expression, REDUCERS | {COUNT, EXP_OF_NEGATIVE})
            expression = Rounded(found.expression, found.dtype) if is_small(found.dtype) else found.expression
            self.dtypes[value] = found.dtype
            self._made[value] = _Made(expression, found.dtype, size, places)


def broadcast(first: Shape, second: Shape) -> Shape:
    """The shape that both broadcast to; `Unsupported` if none, so that the interpreter reports it."""
    try:
        return broadcast_shape(first, second)
    except ValueError as error:
        raise Unsupported(str(error)) from None


def check_dtype(dtype: AnyDType) -> None:
    """Raise `Unsupported` if there is no code for elements of ``dtype``."""
    if not is_supported(dtype):
        raise Unsupported(f"there is no code for elements of type {dtype.name}")


_SCALAR_OPERANDS = {"onnx::Clip"}
"""Operators whose operands but the first have one element, whatever their rank."""


def checked(operation: Operation) -> Operation:
    """``operation``. Raises `Unsupported` if there is no code for it."""
    check_dtype(operation.dtype)
    if not operation.compound:
        for expression in operation.expressions:
            check_expression(expression)
    return operation


def _semantics(
    reader: Reader,
    scalar: ScalarSemantics,
    node: Node,
    operands: Sequence[Value | None],
    dtypes: Sequence[AnyDType | None],
) -> tuple[tuple[Expression, ...], str, AnyDType]:
    """The expressions of an operation, the compound that it is, and the element type of its result."""
    attributes: dict[str, Any] = dict(node.attributes)
    if node.kind == "onnx::Cast":
        to: Any = attributes["to"]
        final = DType[to].numpy if isinstance(to, str) else numpy_dtype(to)  # version 1 names the type
        check_dtype(final)
        return (Operand(0, computed(_given(dtypes[0]))),), "", final
    semantics = scalar.resolve(attributes)
    wide = [None if dtype is None else computed(dtype) for dtype in dtypes]
    if node.kind == "onnx::Pow":
        semantics = _power(reader, semantics, operands, wide)
    if isinstance(semantics, Primitive) and scalar.variadic:
        first = trace(semantics, wide[:2], scalar.floats) if len(wide) > 1 else Operand(0, _given(wide[0]))
        expressions = (first, *[trace(semantics, (wide[0], other), scalar.floats) for other in wide[2:]])
    else:
        expressions = (trace(semantics, wide, scalar.floats),)
    result = None if scalar.result is None else dtypes[scalar.result]
    dtype = result or expressions[0].dtype
    compound = compound_of(semantics) if all(each is not None and each.kind == "f" for each in wide) else ""
    return expressions, compound, dtype


def compound_of(semantics: Any) -> str:
    """What of the library computes ``semantics`` whole; empty if nothing does."""
    if isinstance(semantics, partial):
        is_silu = semantics.func is swish and semantics.keywords == {"alpha": 1.0}
        return "silu" if is_silu else ""
    return "" if isinstance(semantics, Primitive) else COMPOUNDS.get(semantics, "")


def _given(dtype: AnyDType | None) -> AnyDType:
    assert dtype is not None
    return dtype


def _power(reader: Reader, semantics: Any, operands: Sequence[Value | None], wide: Sequence[Any]) -> Any:
    if not all(dtype.kind == "f" for dtype in wide) or wide[0] != wide[1]:
        raise Unsupported("there is no code for powers of integers")
    exponent = operands[1]
    value = reader.numbers.get(exponent) if exponent is not None else None
    return SIMPLE_POWERS.get(value, semantics) if value is not None else semantics


SIMPLE_POWERS: dict[Any, Callable[[Expression, Expression], Expression]] = {
    1.0: lambda x, y: multiply(x, 1),
    2.0: lambda x, y: x * x,
    3.0: lambda x, y: x * x * x,
    -1.0: lambda x, y: 1 / x,
}


def check_expression(expression: Expression, known: Collection[Primitive] = ()) -> None:
    """Raise `Unsupported` if a primitive has no code, and is none of those ``known``."""
    for node in walk(expression):
        if not is_supported(node.dtype):
            raise Unsupported(f"there is no code for elements of type {node.dtype.name}")
        if isinstance(node, Apply) and node.primitive not in (CAST, ROUND, *known):
            name = node.primitive.name
            if name not in PRIMITIVES and not (name in FUNCTIONS and node.dtype.kind == "f"):
                raise Unsupported(f"there is no code for {name} of {node.dtype.name}")


def applied(operation: Operation, operands: Sequence[Expression | None]) -> Expression:
    """What ``operation`` makes of its operands, as one expression."""

    def finished(found: Expression) -> Expression:
        dtype = operation.dtype
        return Rounded(found, dtype) if is_small(dtype) else algebra.cast(found, computed(dtype))

    if operation.compound:
        taken = tuple(x for x in operands if x is not None)
        return finished(Apply(Primitive(operation.compound, len(taken)), taken, taken[0].dtype))
    found = finished(_substitute(operation.expressions[0], operands))
    for expression, other in zip(operation.expressions[1:], operands[2:]):
        found = finished(_substitute(expression, [found, other]))
    return found


def _substitute(expression: Expression, operands: Sequence[Expression | None]) -> Expression:
    """``expression`` with its operands replaced by these."""

    def leaf(node: Expression) -> Expression:
        operand = operands[node.index] if isinstance(node, Operand) else node
        assert operand is not None
        return operand

    def node_of(node: Apply, arguments: Sequence[Expression]) -> Expression:
        if isinstance(node, Rounded):
            return Rounded(arguments[0], node.small)
        return Apply(node.primitive, tuple(arguments), node.dtype)

    return fold(expression, leaf, node_of)


# -- passes --------------------------------------------------------------------


class Pass(NamedTuple):
    """A run over the elements of a row.

    Attributes:
        order: the values that vary that are computed, each after what it is made of.
        reductions: what is reduced, the `Apply` of reducers.
        results: the numbers of the results that are written.
        kept: values that are kept for later passes.
        loaded: values that earlier passes have kept, or written as a result, whose number it is.
    """

    order: list[Expression]
    reductions: list[Apply]
    results: list[int]
    kept: list[Expression]
    loaded: dict[int, int | None]


_KEPT_FROM = 5
"""The cost of recomputing a value, in instructions, from which on it is kept."""


def cost_of(node: Expression, is_gathered: Callable[[int], bool]) -> int:
    """About how many instructions ``node`` takes, without what it is made of."""
    if isinstance(node, Operand):
        return 20 if is_gathered(node.index) else 1
    if not isinstance(node, Apply):
        return 0
    name = node.primitive.name
    return (
        10
        if name in FUNCTIONS or node.primitive is EXP_OF_NEGATIVE
        else 3
        if name in ("divide", "sqrt") or node.primitive is ROUND
        else 1
    )


class Schedule(NamedTuple):
    """The passes of a program.

    Attributes:
        passes: in order.
        varying: the ids of values that vary along rows.
        kept: the values that are kept.
        cost: of an element, in instructions.
    """

    passes: list[Pass]
    varying: set[int]
    kept: list[Expression]
    cost: int


def schedule(program: Program, is_gathered: Callable[[int], bool]) -> Schedule:
    """What the passes of ``program`` compute, if the leaves that it says are slow to read."""
    results = program.roots
    everything = ordered(results)
    vary = program.varying()
    level: dict[int, int] = {}
    for node in everything:
        below = max((level[id(x)] for x in node.arguments), default=0) if isinstance(node, Apply) else 0
        level[id(node)] = below + is_reduction(node)
    count = max(level.values(), default=0) + 1  # a group may have lost all of its results
    reductions: list[list[Apply]] = [[] for _ in range(count)]
    for node in everything:
        if isinstance(node, Apply) and is_reduction(node):
            reductions[level[id(node)] - 1].append(node)
    passes: list[Pass] = []
    first: dict[int, int] = {}  # the pass that computes a value first
    available: dict[int, int | None] = {}
    all_kept: list[Expression] = []
    cost = 0
    for number in range(count):
        written = [i for i, x in enumerate(results) if id(x) in vary and level[id(x)] == number]
        roots = [x.arguments[0] for x in reductions[number]] + [results[i] for i in written]
        order = [x for x in ordered(roots, lambda x: id(x) in available or id(x) not in vary) if id(x) in vary]
        made: dict[int, int] = {}
        for node in order:
            below = sum(made.get(id(x), 0) for x in node.arguments) if isinstance(node, Apply) else 0
            made[id(node)] = 1 if id(node) in available else below + cost_of(node, is_gathered)
        needed = {id(x) for x in roots}
        taken: list[Expression] = []
        loaded: dict[int, int | None] = {}
        for node in reversed(order):
            if id(node) not in needed:
                continue
            taken.append(node)
            if id(node) not in available and first.get(id(node), number) < number and made[id(node)] >= _KEPT_FROM:
                passes[first[id(node)]].kept.append(node)
                available[id(node)] = None
                all_kept.append(node)
            if id(node) in available:
                loaded[id(node)] = available[id(node)]
                continue
            first.setdefault(id(node), number)
            cost += cost_of(node, is_gathered)
            if isinstance(node, Apply):
                needed.update(id(x) for x in node.arguments)
        passes.append(Pass(taken[::-1], reductions[number], written, [], loaded))
        for i in written:
            result = program.results[i]
            if result.dtype == result.expression.dtype and result.dtype.kind != "b":
                available.setdefault(id(result.expression), i)
        cost += 2
    while passes and not passes[-1].reductions and not passes[-1].results:
        passes.pop()
    return Schedule(passes, vary, all_kept, cost)


def overwritable(program: Program, plan: Schedule) -> list[tuple[int, int]]:
    """Pairs (result, leaf) along the row, whose leaf is not read after the result is written."""
    last: dict[int, int] = {}
    written: dict[int, int] = {}
    for number, each in enumerate(plan.passes):
        last.update((x.index, number) for x in each.order if isinstance(x, Operand) and id(x) not in each.loaded)
        written.update((i, number) for i in each.results)
    if len(program.results) == 1 and not written:  # it does not vary along rows, and is written last
        return [(0, leaf) for leaf in range(len(program.leaves))]
    return [(i, leaf) for i, at in written.items() for leaf, read in last.items() if read <= at]


def is_light(program: Program) -> bool:
    """Whether wider vectors pay where lanes lie across rows: all values fit into the registers."""
    nodes = ordered(program.roots)
    names = [x.primitive.name for x in nodes if isinstance(x, Apply)]
    return sum(map(is_reduction, nodes)) == 1 and len(names) <= 4 and FUNCTIONS.keys().isdisjoint(names)


def is_scalar(program: Program) -> bool:
    """Whether there is but one element of each result for a row."""
    vary = program.varying()
    return all(id(x.expression) not in vary for x in program.results)


def is_plain_sum(program: Program) -> bool:
    """Whether what takes time is one sum of an operand as it is."""
    nodes = ordered(program.roots)
    reduced = [x for x in nodes if isinstance(x, Apply) and is_reduction(x)]
    return len(reduced) == 1 and reduced[0].primitive is SUM and isinstance(reduced[0].arguments[0], Operand)


def described(program: Program) -> str:
    """The program as a text, the same for programs that are the same."""
    vary = program.varying()
    text = listing(program.roots, lambda x: f"{x!r}{' varies' * (id(x) in vary)}")
    return f"{text}\n{' '.join(x.dtype.name for x in program.results)}"
