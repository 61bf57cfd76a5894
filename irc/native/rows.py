"""Groups of pointwise operators and operators that reduce rows, as programs over rows.

All reductions of a group are over the same axes of one *domain*, the shape of what is reduced. A program is a graph of
expressions, in which `irc.native.row_operators.REDUCERS` occur. Its values are of two kinds: those that vary along the
reduced axes, and *row values*, of which there is one for each row.

Invariants:

- Each result varies along all axes of the domain that are not reduced, so that each of its elements is written once.
- What a program is depends on element types, on which sizes are 1 and on which are equal, never on sizes themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc.ir.constants import is_none
from irc.ir.kinds import CONSTANT
from irc.native.backend import is_tensor
from irc.native.elements import computed, is_small
from irc.native.groups import (
    Operation,
    Program,
    Rounded,
    add_constant,
    add_operation,
    applied,
    broadcast,
    check_dtype,
    check_expression,
    ordered,
)
from irc.native.row_operators import COUNT, EXP_OF_NEGATIVE, REDUCERS, ROW_OPERATORS, Call, Form
from irc.ops.algebra import AnyDType, Apply, Constant, Expression, Operand
from irc.ops.axes import row_axes
from irc.runtime.backends import Unsupported

if TYPE_CHECKING:
    from irc.ir import Node, Value

Shape = tuple[int, ...]


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
    """A result of a program: of an expression, an array with these axes of the domain; 0 for axes of one element."""

    expression: Expression
    dtype: AnyDType
    places: tuple[int, ...]


class Domain(NamedTuple):
    """What is reduced.

    Attributes:
        rank: its number of axes.
        axes: those that are reduced, counted from the end, in order.
        groups: into how many groups the second axis is cut, 0: it is not. Groups are not reduced.
    """

    rank: int
    axes: tuple[int, ...]
    groups: int


class RowProgram(NamedTuple):
    """A group.

    Attributes:
        domain: as it says.
        leaves: what `Operand` numbers.
        results: what is made.
        constants: the arrays that follow the operands among the inputs.
    """

    domain: Domain
    leaves: list[Leaf]
    results: list[Result]
    constants: list[np.ndarray[Any, Any]]

    def sizes(self, shapes: Sequence[Shape]) -> Shape:
        """The domain's sizes, for the shapes of all inputs."""
        found = [1] * self.domain.rank
        for leaf in self.leaves:
            for axis, place in leaf.places:
                found[place] = shapes[leaf.source][axis]
        return tuple(found)


class _Value(NamedTuple):
    """What a member of the group makes: as `Result`, with the shape."""

    expression: Expression
    dtype: AnyDType
    shape: Shape
    places: tuple[int, ...]


def read(
    nodes: Sequence[Node], inputs: Sequence[Value], kinds: Sequence[tuple[AnyDType, Shape]], outputs: Sequence[Value]
) -> RowProgram:
    """The program of ``nodes``, of operands of these types and shapes. Raises `Unsupported`."""
    return _Reader(nodes, inputs, kinds).read(outputs)


class _Reader:
    def __init__(self, nodes: Sequence[Node], inputs: Sequence[Value], kinds: Sequence[tuple[AnyDType, Shape]]) -> None:
        self._nodes = nodes
        self._program = Program([], [], [], {}, {}, set())
        self._shapes: dict[Value, Shape] = {}
        for value, (dtype, shape) in zip(inputs, kinds, strict=True):
            check_dtype(dtype)
            self._program.inputs.append(value)
            self._program.dtypes[value] = dtype
            self._shapes[value] = shape
            if not shape:
                self._program.single.add(value)
        self._made: dict[Value, _Value] = {}
        self._leaves: dict[Leaf, Operand] = {}
        self._domain: Domain | None = None
        self._shape: Shape = ()

    def read(self, outputs: Sequence[Value]) -> RowProgram:
        program = self._program
        for node in self._nodes:
            if node.kind == CONSTANT:
                if not is_none(node.output) and hasattr(node.attributes.get("value"), "numpy"):
                    known = len(program.constants)
                    add_constant(program, node)
                    self._shapes[node.output] = program.constants[known].shape if len(program.constants) > known else ()
            elif node.kind in ROW_OPERATORS:
                self._reduce(node)
            else:
                add_operation(program, node)
                self._apply(program.operations.pop())
        if self._domain is None:
            raise Unsupported("nothing is reduced")
        if not all(value in self._made for value in outputs):
            raise Unsupported("a result is made by no operator of the group")
        results = [
            Result(x.expression, x.dtype, tuple(place if size != 1 else 0 for place, size in zip(x.places, x.shape)))
            for x in (self._made[value] for value in outputs)
        ]
        found = RowProgram(self._domain, list(self._leaves), results, program.constants)
        self._check(found, [self._made[value].shape for value in outputs])
        return found

    def _check(self, program: RowProgram, shapes: Sequence[Shape]) -> None:
        domain, sizes = program.domain, self._shape
        given = [self._shapes[value] for value in self._program.inputs]
        for leaf in program.leaves:
            for axis, place in leaf.places:
                if not -domain.rank <= place < 0 or given[leaf.source][axis] != sizes[place]:
                    raise Unsupported("shapes differ from that of what is reduced")
        kept = {place for place in range(-domain.rank, 0) if sizes[place] != 1}
        rows = kept - set(domain.axes)
        for result, shape in zip(program.results, shapes):
            covered = {place for place, size in zip(result.places, shape) if size != 1}
            if covered != (kept if varies(program, result.expression) else rows):
                raise Unsupported("a result has fewer axes than what is reduced")

    def _leaf(self, value: Value, places: Sequence[int]) -> Expression:
        """The input ``value`` whose axes are these of the domain."""
        program = self._program
        dtype, shape = program.dtypes[value], self._shapes[value]
        if value in program.numbers:
            return Constant(program.numbers[value], computed(dtype))
        where = tuple((axis, places[axis]) for axis, size in enumerate(shape) if size != 1)
        if any(place == 0 for _, place in where):
            raise Unsupported("an operand has an axis that is reduced")
        leaf = Leaf(program.inputs.index(value), dtype, where)
        return self._leaves.setdefault(leaf, Operand(len(self._leaves), computed(dtype)))

    def _shape_of(self, value: Value) -> Shape:
        made = self._made.get(value)
        return self._shapes[value] if made is None else made.shape

    def _aligned(self, values: Sequence[Value], shape: Shape) -> tuple[int, ...]:
        """The domain's axes of a result of ``shape`` that pointwise operators make of ``values``."""
        rank = len(shape)
        found: dict[int, int] = {}
        is_usual = True
        for value in values:
            made = self._made.get(value)
            if made is None:
                continue
            for i, (size, place) in enumerate(zip(made.shape, made.places)):
                if size == 1:
                    continue
                axis = i - len(made.shape)
                is_usual &= place == axis
                if found.setdefault(axis, place) != place:
                    raise Unsupported("operands lie along different axes")
        return tuple(found.get(axis, axis if is_usual else 0) for axis in range(-rank, 0))

    def _apply(self, operation: Operation) -> None:
        present = [value for value in operation.operands if value is not None]
        counted = present[:1] if operation.is_shaped_like_first else present
        shape: Shape = ()
        for value in counted:
            shape = broadcast(shape, self._shape_of(value))
        if operation.is_of_one_shape and any(self._shape_of(value) != shape for value in present):
            raise Unsupported("attributes align operands of different shapes")
        places = self._aligned(counted, shape)
        taken: list[Expression | None] = []
        for value in operation.operands:
            if value is None:
                taken.append(None)
            elif value in self._made:
                taken.append(self._made[value].expression)
            else:
                taken.append(self._leaf(value, places[len(places) - len(self._shapes[value]) :]))
        made = applied(operation, taken)
        self._made[operation.result] = _Value(made, operation.dtype, shape, places)

    def _reduce(self, node: Node) -> None:
        operands = [value if is_tensor(value) else None for value in node.inputs]
        first = operands[0]
        assert first is not None
        shape = self._shape_of(first)
        rank = len(shape)
        usual = tuple(range(-rank, 0))
        made = self._made.get(first)
        if made is not None and made.places != usual:
            raise Unsupported("what is reduced lies along other axes")

        def operand(index: int, is_channel: bool) -> Expression:
            value = operands[index]
            assert value is not None
            own = self._made.get(value)
            own_shape = self._shape_of(value)
            if is_channel:
                if own is not None:
                    raise Unsupported("parameters of channels are computed")
                return self._leaf(value, (1 - rank,))
            if own is not None and own.places != tuple(range(-len(own.shape), 0)):
                raise Unsupported("operands lie along different axes")
            if broadcast(own_shape, shape) != shape:
                raise Unsupported("an operand does not broadcast to the first")
            return self._leaf(value, usual[rank - len(own_shape) :]) if own is None else own.expression

        dtypes = [None if x is None else self._program.dtypes[x] for x in operands]
        shapes = [() if x is None else self._shape_of(x) for x in operands]
        call = Call(node, dtypes, shapes, operand)
        rows = row_axes(node, rank)
        if rows is None:
            raise Unsupported(f"it is not known which elements {node.kind} reduces")
        results = ROW_OPERATORS[node.kind](call)
        if rows.groups and shape[1] % rows.groups:
            raise Unsupported("groups do not divide the channels")
        domain = Domain(rank, *rows)
        if self._domain not in (None, domain) or (self._domain is not None and shape != self._shape):
            raise Unsupported("rows lie along different axes")
        self._domain, self._shape = domain, shape
        for value, found in zip(node.outputs, results):
            check_dtype(found.dtype)
            places, size = usual, shape
            if found.form is not Form.FULL:
                places = tuple(0 if place in domain.axes else place for place in usual)
                size = tuple(n if place else 1 for n, place in zip(shape, places))
            if found.form is Form.SQUEEZED:
                size = tuple(n for n, place in zip(shape, places) if place)
                places = tuple(place for place in places if place)
            expression = found.expression
            check_expression(expression, REDUCERS | {COUNT, EXP_OF_NEGATIVE})
            if is_small(found.dtype):
                expression = Rounded(expression, found.dtype)
            self._program.dtypes[value] = found.dtype
            if not size:
                self._program.single.add(value)
            self._made[value] = _Value(expression, found.dtype, size, places)


def is_reduction(node: Expression) -> bool:
    """Whether ``node`` reduces rows."""
    return isinstance(node, Apply) and node.primitive in REDUCERS


def varies(program: RowProgram, expression: Expression) -> bool:
    """Whether ``expression`` varies along rows."""
    for node in ordered([expression], is_reduction):
        if isinstance(node, Operand) and any(
            place in program.domain.axes for _, place in program.leaves[node.index].places
        ):
            return True
    return False
