"""Records of TorchScript's operators: a node's arguments by name, promotion of types, and shape rules."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from itertools import product
from typing import Any, cast

import numpy as np

from irc.errors import Error
from irc.ir import Schema, Value, types
from irc.ir.types import NONE, SCALAR_TYPES, TENSOR, Dim, DType, ListType, OptionalType, Shape, TensorType, Type
from irc.ops.algebra import AnyDType
from irc.ops.aten.promotion import combined
from irc.ops.inference import NodeTypes, as_contents
from irc.ops.record import Family, ShapeRule
from irc.ops.shape_rules import apply
from irc.ops.signatures import resolve

CallRule = Callable[["Call"], "Type | Sequence[Type]"]
"""Gives the types of a call's results; trailing ones that are missing, and what types leave open, are unknown."""


CallCount = Callable[["Call", int], int]
"""As `irc.ops.record.Count`, of a call."""


class TorchFamily(Family):
    """The ``aten::`` records of one module.

    Args:
        rows: schema rows with tags: see `irc.ops.record`.
    """

    def __init__(self, rows: str) -> None:
        super().__init__("aten", rows)

    def shape(self, *kinds: str) -> Callable[[CallRule], CallRule]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Make a function the shape rule of ``kinds``, which are given without namespace."""

        def enter(rule: CallRule) -> CallRule:
            self._attach("shape", kinds)(shape_rule_of(rule))
            return rule

        return enter

    def macs(self, *kinds: str) -> Callable[[CallCount], CallCount]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Make a function tell the multiply-accumulates of ``kinds``."""

        def enter(count: CallCount) -> CallCount:
            @wraps(count)
            def told(c: NodeTypes, elements: int) -> int:
                schema = resolve(c.node)
                if schema is None:
                    raise TypeError("no overload takes such operands")
                return count(Call(c, schema), elements)

            self._attach("macs", kinds)(told)
            return count

        return enter


def shape_rule_of(rule: CallRule) -> ShapeRule:
    """``rule`` as the shape rule of a record."""

    @wraps(rule)
    def told(c: NodeTypes) -> Sequence[Type]:
        return _apply(rule, c)

    return told


def _apply(rule: CallRule, c: NodeTypes) -> Sequence[Type]:
    """The types of all outputs; what the rule leaves open is a plain tensor, whatever was inferred before."""
    schema, outputs = resolve(c.node), c.node.outputs
    for value in outputs:
        c.contents.pop(value, None)
    found: Type | Sequence[Type] = ()
    if schema is not None:
        try:
            found = apply(lambda types: rule(Call(types, schema)), c)
        except Error:  # shapes that do not fit: if this ever runs, it fails, which is for the run to say
            found = ()
    types = [found] if isinstance(found, Type) else list(found)
    plain = [_open(v.type) for v in outputs]
    return [t if type(t) is type(p) else p for t, p in zip(types, plain, strict=False)] + plain[len(types) :]


def _open(type: Type) -> Type:
    """``type`` without what inference adds to types."""
    if isinstance(type, TensorType):
        return TENSOR
    return ListType(TENSOR) if isinstance(type, ListType) and isinstance(type.elem, TensorType) else type


class Call:
    """One node and the schema it means."""

    def __init__(self, types: NodeTypes, schema: Schema) -> None:
        self.types = types
        self.node = types.node
        self.schema = schema
        self._index = {a.name: i for i, a in enumerate(schema.arguments)}

    def _at(self, name: str | int) -> int | None:
        """The position of the argument of that name or number; None if it is not given."""
        index = name if isinstance(name, int) else self._index.get(name, len(self.node.inputs))
        return index if index < len(self.node.inputs) else None

    def type(self, name: str | int) -> Type | None:
        """The type of an argument; None if it is not given, or None."""
        index = self._at(name)
        found = NONE if index is None else self.types.plain_type(index)
        return None if found == NONE else found

    def tensor(self, name: str | int) -> TensorType:
        """The type of a tensor argument; an unknown one if it is absent or no tensor."""
        found = self.type(name)
        found = found.elem if isinstance(found, OptionalType) else found
        return found if isinstance(found, TensorType) else TENSOR

    def sizes(self, name: str | int) -> tuple[int, ...]:
        """The shape of a tensor argument, as counts of operations need it: TypeError if it is not known."""
        return cast("tuple[int, ...]", tuple(cast("Shape", self.tensor(name).shape)))

    def arg(self, name: str, default: Any = None) -> Any:
        """An argument's constant value; ``default`` if this overload lacks it; UNKNOWN if it may vary."""
        if name not in self._index:
            return default
        index = self._at(name)
        return self.schema.arguments[self._index[name]].default if index is None else self.types.item(index)

    def number(self, name: str, absent: int | None = None) -> int | None:
        """The constant integer of an argument; ``absent`` if it is not given; None if it may vary."""
        given = self.arg(name)
        return absent if given is None else given if isinstance(given, int) else None

    def dims(self, name: str, count: int | None = None) -> list[Dim] | None:
        """The elements of a list of integers, None where one is unknown; None if the list itself is unknown.

        One number stands for ``count`` equal ones.
        """
        if name not in self._index:
            return None
        index = self._at(name)
        is_list = index is not None and isinstance(self.types.plain_type(index), ListType)
        found: Any = self.types.items(index) if index is not None and is_list else self.arg(name)
        if isinstance(found, int):
            found = [found]
        if not isinstance(found, list | tuple):
            return None
        items: list[Any] = list(found)  # type: ignore[reportUnknownArgumentType]
        dims: list[Dim] = [d if isinstance(d, int | str) else None for d in items]
        return dims * count if count is not None and len(dims) == 1 else dims

    def has(self, name: str) -> bool:
        """Whether an argument is given and not None."""
        return self.type(name) is not None

    def factors(self, name: str) -> list[int] | None:
        """The elements of a list of numbers, if all are known and whole."""
        index = self._at(name)
        found = None if index is None else self.types.items(index)
        if found is None or not all(isinstance(f, int | float) and f == int(f) for f in found):
            return None
        return [int(f) for f in found]

    def elements(self, name: str) -> list[TensorType] | None:
        """The types of the tensors in a list that is made on the spot."""
        index = self._at(name)
        found = None if index is None else self.types.element_types(index)
        return None if found is None else [t if isinstance(t, TensorType) else TENSOR for t in found]

    def axis(self, dim: Any, rank: int) -> int | None:
        """``dim`` counted from the front, if it is known; Error if it is out of range."""
        if not isinstance(dim, int):
            return None
        return self.types.axis(dim, max(rank, 1))

    def broadcast(self, shapes: Sequence[Shape | None]) -> Shape | None:
        """The shape of what is broadcast together; Error if it cannot be."""
        return self.types.broadcast(shapes)

    def is_number(self) -> bool:
        """Whether the result is a number or list, not a tensor."""
        return not isinstance(self.node.outputs[0].type, TensorType)

    def tell(self, value: Value, contents: Any) -> None:
        """Record the constant contents of an integer, or of a list of integers."""
        self.types.contents[value] = as_contents(np.array(contents, object))


def resized(shape: Shape, at: int, *sizes: Dim) -> Shape:
    """``shape`` with ``sizes`` in place of the size of axis ``at``."""
    return (*shape[:at], *sizes, *shape[at + 1 :])


# -- promotion of element types ------------------------------------------------


NUMBERS: dict[Type, DType] = {types.BOOL: DType.BOOL, types.INT: DType.INT64, types.FLOAT: DType.FLOAT}

COMPLEX = {DType.FLOAT: DType.COMPLEX64, DType.DOUBLE: DType.COMPLEX128}
"""Type of the parts -> type of the complex numbers."""

REAL = {**{whole: part for part, whole in COMPLEX.items()}, DType.FLOAT: DType.FLOAT, DType.DOUBLE: DType.DOUBLE}
"""Type of numbers, complex or not -> type of their real parts."""


def result_type(operands: Iterable[Type]) -> DType | None:
    """The element type of an arithmetic result on tensors and numbers; None if the types leave it open."""
    places: list[list[tuple[int, AnyDType]]] = []
    for operand in operands:
        if isinstance(operand, TensorType):
            if operand.dtype is None:
                return None
            groups = (0, 1) if operand.shape is None else (0,) if operand.shape else (1,)
            places.append([(group, operand.dtype.numpy) for group in groups])
        elif operand in NUMBERS:
            places.append([(2, NUMBERS[operand].numpy)])
        else:
            return None
    if not 0 < len(places) <= 4:
        return None
    # Where a rank is unknown, both possibilities must agree.
    choices = [[[dtype for at, dtype in choice if at == group] for group in range(3)] for choice in product(*places)]
    found = set(map(combined, choices))
    return DType.from_numpy(found.pop()) if len(found) == 1 else None


def is_integral(dtype: DType) -> bool:
    """Whether elements are integers or bools."""
    return dtype.is_integer or dtype is DType.BOOL


def as_float(dtype: DType | None) -> DType | None:
    """The type of a true division, or of a function of real numbers, that has operands of type ``dtype``."""
    return DType.FLOAT if dtype is not None and is_integral(dtype) else dtype


def if_float(dtype: DType | None) -> DType | None:
    """``dtype`` if it is floating-point, else None, as the operator treats other types differently."""
    return dtype if dtype is not None and dtype.is_float else None


def element_type(given: Any) -> DType | None:
    """The element type that a ``ScalarType`` argument names, if it is known."""
    return SCALAR_TYPES.get(given) if isinstance(given, int) else None


def common_type(*operands: TensorType) -> DType | None:
    """The common element type of operands that must agree."""
    found = {t.dtype for t in operands}
    return found.pop() if len(found) == 1 else None


# -- shape rules -----------------------------------------------------------------

_NOT_OPERANDS = frozenset({"alpha", "value", "rounding_mode", "condition", "eps"})

_INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in "add sub mul eq ne lt le gt ge".split()
}


def like_first(c: Call) -> Type:
    """The type of the first operand."""
    return c.tensor(0)


def like_first_if_float(c: Call) -> Type:
    """The type of the first operand; of other element types than floats, only its shape."""
    return TensorType(if_float(c.tensor(0).dtype), c.tensor(0).shape)


def together(c: Call, operands: list[Type] | None = None) -> TensorType:
    """The common element type and broadcast shape of ``operands``, by default all operands' types."""
    operands = _operands(c) if operands is None else operands
    shapes = [t.shape for t in operands if t.is_any or holds_tensors(t)]
    if c.schema.name == "aten::where":
        shapes.append(c.tensor("condition").shape)
    return TensorType(result_type(operands), c.broadcast(shapes))


def _operands(c: Call) -> list[Type]:
    names = [a.name for a in c.schema.arguments if a.name not in _NOT_OPERANDS]
    return [type for type in map(c.type, names) if type is not None]


def holds_tensors(type: Type) -> bool:
    """Whether ``type`` is that of a tensor, or of a list of tensors."""
    if isinstance(type, ListType | OptionalType):
        return holds_tensors(type.elem)
    return isinstance(type, TensorType)


def floats(c: Call) -> Type | tuple[Type, ...]:
    """Float where the operands are bools or integers, else their common type."""
    if c.is_number():
        return ()
    found = together(c)
    return TensorType(as_float(found.dtype), found.shape)


def shape_together(c: Call) -> Type | tuple[Type, ...]:
    """The broadcast shape of the operands, of any element type."""
    return () if c.is_number() else TensorType(None, together(c).shape)


def _number(c: Call) -> tuple[Type, ...]:
    """Arithmetic on known integers, which computes shapes: the result is tracked."""
    apply = _INTEGERS.get(c.schema.name.removeprefix("aten::"))
    values = [c.types.item(i) for i in range(len(c.node.inputs))]
    if apply is not None and len(values) == 2 and all(isinstance(v, int) for v in values):
        c.tell(c.node.outputs[0], apply(*values))
    return ()


BY_RESULT_TYPE: dict[str, CallRule] = {
    "bool": lambda c: _number(c) if c.is_number() else TensorType(DType.BOOL, together(c).shape),
    "common": lambda c: _number(c) if c.is_number() else together(c),
    "first": like_first,
    "first-if-float": like_first_if_float,
    "float": floats,
}
"""Value of the tag ``pointwise`` -> the shape rule of pointwise operators that have no other."""
