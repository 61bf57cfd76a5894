"""Fusion groups of pointwise operators as loop bodies, from the scalar semantics that the operators' records state."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc import ops
from irc.ir.constants import is_none
from irc.ir.kinds import CONSTANT
from irc.ir.tensor import Tensor
from irc.ir.types import DType
from irc.native.elements import HALF, computed, is_small, is_supported, rounded, rounded_to_odd
from irc.native.functions import FUNCTIONS
from irc.native.lanes import Emitter, Lanes
from irc.native.loops import Body, function
from irc.native.primitives import PRIMITIVES, cast
from irc.ops import algebra, functions
from irc.ops.algebra import (
    CAST,
    DOUBLE,
    AnyDType,
    Apply,
    Constant,
    Expression,
    Operand,
    Primitive,
    fold,
    multiply,
    walk,
)
from irc.ops.onnx.pointwise import swish
from irc.ops.scalar import ScalarSemantics, trace
from irc.runtime.backends import Unsupported
from irc.runtime.kernels.support import broadcast_shape, numpy_dtype

if TYPE_CHECKING:
    from irc.ir import Node, Value

Shape = tuple[int, ...]


COMPOUNDS: dict[Any, str] = {
    functions.gelu: "gelu",
    functions.gelu_tanh: "gelu_tanh",
    functions.mish: "mish",
    functions.sigmoid: "sigmoid",
    functions.silu: "silu",
    functions.softplus: "softplus",
}
"""Semantics that the library has whole, which is faster than their primitives one by one."""


ROUND = Primitive("round_to_small", 1, "A float rounded to the small float type that a `Rounded` names.")


class Rounded(Apply):
    """A value rounded once to a small float type, as float32."""

    __slots__ = ("small",)

    def __init__(self, x: Expression, small: AnyDType) -> None:
        super().__init__(ROUND, (x,), computed(small))
        self.small = small


class Operation(NamedTuple):
    """An operator of a group.

    Attributes:
        result: the value that it makes.
        operands: what it takes; None where one is absent.
        expressions: the first is of the operands; each other one of the result so far and the next operand.
        compound: what of the library computes it whole; empty: nothing.
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
    is_shaped_like_first: bool
    is_of_one_shape: bool
    keeps_layout: bool


class Program(NamedTuple):
    """A group for operands of certain types.

    Attributes:
        operations: in order.
        inputs: the arrays that are read: the group's inputs, one maybe more than once, then constants of several
            elements.
        constants: the arrays of the latter.
        numbers: constants of one element.
        dtypes: the element type of each value.
        single: the values without axes.
    """

    operations: list[Operation]
    inputs: list[Value]
    constants: list[np.ndarray[Any, Any]]
    numbers: dict[Value, complex]
    dtypes: dict[Value, AnyDType]
    single: set[Value]

    def shapes(self, given: Sequence[Shape]) -> dict[Value, Shape]:
        """The shape of each value, for those of the group's inputs."""
        constants = [x.shape for x in self.constants]
        found = dict(zip(self.inputs, (*given, *constants), strict=True))
        found.update((value, ()) for value in self.numbers)
        for operation in self.operations:
            taken = [found[x] for x in operation.operands if x is not None]
            if operation.is_shaped_like_first:
                if any(math.prod(other) != 1 for other in taken[1:]):
                    raise Unsupported("a bound has several elements")
                taken = taken[:1]
            shape = taken[0]
            for other in taken[1:]:
                if other != shape:
                    shape = broadcast(shape, other)
            if operation.is_of_one_shape and any(other != shape for other in taken):
                raise Unsupported("attributes align operands of different shapes")
            found[operation.result] = shape
        return found

    def needed(self, results: Sequence[Value]) -> list[Operation]:
        """The operations that ``results`` depend on, in order."""
        wanted = set(results)
        found: list[Operation] = []
        for operation in reversed(self.operations):
            if operation.result in wanted:
                wanted.update(x for x in operation.operands if x is not None)
                found.append(operation)
        return found[::-1]


def read(nodes: Sequence[Node], inputs: Iterable[tuple[Value, AnyDType, bool]]) -> Program:
    """The program of ``nodes``, of operands of these types, of which some may be equal.

    Args:
        nodes: in order.
        inputs: with their element types, and whether they have axes.

    Raises:
        Unsupported: there is no code for them.
    """
    program = Program([], [], [], {}, {}, set())
    for value, dtype, has_axes in inputs:
        check_dtype(dtype)
        program.inputs.append(value)
        program.dtypes[value] = dtype
        if not has_axes:
            program.single.add(value)
    for node in nodes:
        if node.kind == CONSTANT:
            if not is_none(node.output):
                add_constant(program, node)
        else:
            add_operation(program, node)
    return program


def broadcast(first: Shape, second: Shape) -> Shape:
    """The shape that both broadcast to. Raises `Unsupported` if there is none, which the interpreter's kernels say."""
    try:
        return broadcast_shape(first, second)
    except ValueError as error:
        raise Unsupported(str(error)) from None


def check_dtype(dtype: AnyDType) -> None:
    """Raise `Unsupported` if there is no code for elements of ``dtype``."""
    if not is_supported(dtype):
        raise Unsupported(f"there is no code for elements of type {dtype.name}")


def add_constant(program: Program, node: Node) -> None:
    """Add a constant; if it is no array, operators take it as it is. Raises `Unsupported`."""
    tensor = node.attributes["value"]
    if not isinstance(tensor, Tensor):
        return
    array = np.asarray(tensor.numpy())
    check_dtype(array.dtype)
    value = node.output
    program.dtypes[value] = array.dtype
    if not array.ndim:
        program.numbers[value] = array.astype(computed(array.dtype)).item()
        program.single.add(value)
    else:
        program.inputs.append(value)
        program.constants.append(np.ascontiguousarray(array))


_SCALAR_OPERANDS = {"onnx::Clip"}
"""Operators whose operands but the first have one element, whatever their rank."""


def add_operation(program: Program, node: Node) -> None:
    """Add a pointwise operator. Raises `Unsupported`."""
    if len(node.outputs) != 1:
        raise Unsupported(f"there is no code for {node.kind}")
    if node.kind.startswith("aten::"):
        from irc.native.torch_operators import torch_operation

        made = torch_operation(program, node)
    else:
        made = _operation(program, node)
    program.operations.append(made)
    program.dtypes[made.result] = made.dtype
    if program.single.issuperset(x for x in made.operands if x is not None):
        program.single.add(made.result)


def _operation(program: Program, node: Node) -> Operation:
    scalar = ops.semantics(node.kind, node.version) if node.kind.startswith("onnx::") else None
    if scalar is None:
        raise Unsupported(f"there is no code for {node.kind}")
    operands = tuple(None if is_none(value) else value for value in node.inputs)
    if not all(x is None or x in program.dtypes for x in operands):
        raise Unsupported("an operand is no array")
    dtypes = [None if x is None else program.dtypes[x] for x in operands]
    expressions, compound, dtype = _semantics(program, scalar, node, operands, dtypes)
    made = finished_operation(node.output, operands, expressions, compound, dtype)
    return made._replace(is_shaped_like_first=node.kind in _SCALAR_OPERANDS, is_of_one_shape=not scalar.broadcasts)


def finished_operation(
    result: Value,
    operands: tuple[Value | None, ...],
    expressions: tuple[Expression, ...],
    compound: str,
    dtype: AnyDType,
    keeps_layout: bool = False,
) -> Operation:
    """The operation with these properties: see `Operation`. Raises `Unsupported`."""
    check_dtype(dtype)
    if not compound:
        for expression in expressions:
            check_expression(expression)
    return Operation(result, operands, expressions, compound, dtype, False, False, keeps_layout)


def _semantics(
    program: Program,
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
        semantics = _power(program, semantics, operands, wide)
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


def _power(program: Program, semantics: Any, operands: Sequence[Value | None], wide: Sequence[Any]) -> Any:
    if not all(dtype.kind == "f" for dtype in wide) or wide[0] != wide[1]:
        raise Unsupported("there is no code for powers of integers")
    exponent = operands[1]
    value = program.numbers.get(exponent) if exponent is not None else None
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


def ordered(roots: Sequence[Expression], stops: Callable[[Expression], bool]) -> list[Expression]:
    """``roots`` and all nodes below, arguments first; nothing below a node at which it ``stops``."""
    found: list[Expression] = []
    seen: set[int] = set()
    pending = [(root, False) for root in reversed(roots)]
    while pending:
        node, is_done = pending.pop()
        if is_done:
            found.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            pending.append((node, True))
            if isinstance(node, Apply) and not stops(node):
                pending.extend((argument, False) for argument in reversed(node.arguments))
    return found


def listing(roots: Sequence[Expression], operand: Callable[[Operand], str]) -> str:
    """``roots`` as a text, the same for expressions that are the same; ``operand`` says what a leaf is."""
    numbers: dict[int, int] = {}
    lines: list[str] = []
    for node in ordered(roots, lambda _: False):
        if isinstance(node, Apply):
            small = node.small.name if isinstance(node, Rounded) else ""
            arguments = ",".join(str(numbers[id(x)]) for x in node.arguments)
            lines.append(f"{node.primitive.name}{small}({arguments}) {node.dtype}")
        else:
            lines.append(f"{operand(node) if isinstance(node, Operand) else node!r} {node.dtype}")
        numbers[id(node)] = len(numbers)
    return "\n".join((*lines, ",".join(str(numbers[id(x)]) for x in roots)))


class GroupBody(Body):
    """The loop body of some operations.

    Args:
        program: the group's.
        results: what is to be made.
    """

    def __init__(self, program: Program, results: Sequence[Value]) -> None:
        operations = program.needed(results)
        used = {x for operation in operations for x in operation.operands} | set(results)
        self.inputs = list(dict.fromkeys(value for value in program.inputs if value in used))
        self._leaves = [Operand(i, computed(program.dtypes[value])) for i, value in enumerate(self.inputs)]
        made: dict[Value, Expression] = dict(zip(self.inputs, self._leaves))
        made.update((x, Constant(n, computed(program.dtypes[x]))) for x, n in program.numbers.items())
        for operation in operations:
            made[operation.result] = applied(operation, [None if x is None else made[x] for x in operation.operands])
        self._results = [made[value] for value in results]
        self._nodes = ordered(self._results, lambda _: False)
        self._known: dict[int, Lanes] = {}
        calls = sum(isinstance(node, Apply) and node.primitive.name in FUNCTIONS for node in self._nodes)
        self.cost = 0.05 + 0.02 * len(operations) + 0.25 * calls
        """About how many nanoseconds an element takes."""
        self.key = listing(self._results, repr)

    def before(self, emitter: Emitter, fixed: Sequence[Lanes | None]) -> None:
        self._known = self._evaluate(emitter, {id(leaf): x for leaf, x in zip(self._leaves, fixed) if x is not None})

    def compute(self, emitter: Emitter, operands: Sequence[Lanes]) -> list[Lanes]:
        leaves = {id(leaf): x for leaf, x in zip(self._leaves, operands)}
        found = self._evaluate(emitter, {**self._known, **leaves})
        return [found[id(node)] for node in self._results]

    def _evaluate(self, emitter: Emitter, known: dict[int, Lanes]) -> dict[int, Lanes]:
        """``known``, and what is made of it."""
        for node in self._nodes:
            if id(node) in known:
                continue
            if isinstance(node, Constant):
                known[id(node)] = emitter.constant(node.value, node.dtype)
            elif isinstance(node, Apply) and all(id(x) in known for x in node.arguments):
                known[id(node)] = apply(emitter, node, [known[id(x)] for x in node.arguments])
        return known


def converted(x: Lanes, dtype: AnyDType) -> Lanes:
    """``x`` as an element of type ``dtype`` is computed with: of a small type, a number that it holds."""
    if x.dtype == DOUBLE and dtype == HALF:
        return rounded(rounded_to_odd(x), dtype)
    return rounded(cast(x, computed(dtype)), dtype)


def apply(emitter: Emitter, node: Apply, arguments: Sequence[Lanes]) -> Lanes:
    """Emit the primitive of ``node``."""
    name = node.primitive.name
    if node.primitive is CAST:
        return cast(arguments[0], node.dtype)
    if isinstance(node, Rounded):
        return converted(arguments[0], node.small)
    return PRIMITIVES[name](*arguments) if name in PRIMITIVES else call(emitter, name, arguments)


def call(emitter: Emitter, name: str, arguments: Sequence[Lanes]) -> Lanes:
    """Emit a call of a mathematical function of the library."""
    dtype, count = arguments[0].dtype, emitter.count
    symbol = f"irc.{name}.f{8 * dtype.itemsize}x{count}"
    kind = emitter.vector(dtype)
    flags = emitter.has_fma, emitter.has_f16c

    def make() -> tuple[str, Mapping[str, Any]]:
        made, builder = function(symbol, [kind] * len(arguments), kind)
        inner = Emitter(builder, count, *flags)
        builder.ret(FUNCTIONS[name](*[Lanes(inner, x, dtype) for x in made.args]).value)
        return str(made.module), inner.needs

    found = emitter.library(symbol, kind, [kind] * len(arguments), make)
    return Lanes(emitter, emitter.builder.call(found, [x.value for x in arguments]), dtype)
