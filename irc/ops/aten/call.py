"""Records of TorchScript's operators, and what their shape rules see of a node: its arguments, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from irc.errors import Error
from irc.ir.kinds import CONSTANT
from irc.ir.types import NONE, TENSOR, Dim, ListType, OptionalType, Shape, TensorType, Type
from irc.ops import tags
from irc.ops.inference import NodeTypes, as_contents
from irc.ops.record import Family, ShapeRule
from irc.ops.resolution import resolve
from irc.ops.shape_rules import apply

if TYPE_CHECKING:
    from irc.ir import Value
    from irc.ir.schema import Schema

UNKNOWN: Final = object()
"""An argument that the graph does not tell."""

CallRule = Callable[["Call"], "Type | Sequence[Type]"]
"""Gives the types of a call's results; trailing ones that are missing, and what types leave open, are unknown."""


class TorchFamily(Family):
    """The ``aten::`` records of one module.

    Args:
        rows: schema rows with tags: see `irc.ops.tags`.
    """

    def __init__(self, rows: str) -> None:
        super().__init__("aten", tags.statements(rows))

    def shape(self, *kinds: str) -> Callable[[CallRule], CallRule]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Make a function the shape rule of ``kinds``, which are given without namespace."""

        def enter(rule: CallRule) -> CallRule:
            self._attach("shape", kinds)(shape_rule_of(rule))
            return rule

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
    if schema is not None and c.is_stable:
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

    def value(self, name: str | int) -> Value | None:
        """The argument of that name or number, if it is given and not None."""
        index = name if isinstance(name, int) else self._index.get(name, len(self.node.inputs))
        if index >= len(self.node.inputs):
            return None
        found = self.node.inputs[index]
        return None if found.type == NONE else found

    def tensor(self, name: str | int) -> TensorType:
        """The type of a tensor argument; an unknown one if it is absent or no tensor."""
        value = self.value(name)
        type = value.type if value is not None else TENSOR
        type = type.elem if isinstance(type, OptionalType) else type
        return type if isinstance(type, TensorType) else TENSOR

    def arg(self, name: str, default: Any = None) -> Any:
        """The constant value of an argument; ``default`` if this overload does not have it; UNKNOWN if it may vary."""
        if name not in self._index:
            return default
        if self._index[name] >= len(self.node.inputs):
            return self.schema.arguments[self._index[name]].default
        value = self.node.inputs[self._index[name]]
        return None if value.type == NONE else self.known(value)

    def number(self, name: str, absent: int | None = None) -> int | None:
        """The constant whole number of an argument; ``absent`` if it is not given; None if it may vary."""
        given = self.arg(name)
        return absent if given is None else given if isinstance(given, int) else None

    def known(self, value: Value) -> Any:
        """The constant Python value of ``value``, or UNKNOWN."""
        tracked = self.types.contents.get(value)
        if tracked is not None and tracked.ndim == 0 and not isinstance(value.type, TensorType):
            return tracked.item() if isinstance(tracked.item(), int) else UNKNOWN
        source = value.made_by(CONSTANT)
        found = UNKNOWN if source is None else source.attributes.get("value", UNKNOWN)
        return found if isinstance(found, bool | int | float | str) else UNKNOWN

    def dims(self, name: str, count: int | None = None) -> list[Dim] | None:
        """The elements of a list of integers, None where one is unknown; None if the list itself is unknown.

        One number stands for ``count`` equal ones.
        """
        if name not in self._index:
            return None
        index = self._index[name]
        if index >= len(self.node.inputs):
            found: Any = self.schema.arguments[index].default
        else:
            value = self.node.inputs[index]
            found = self._items(value) if isinstance(value.type, ListType) else self.known(value)
        if isinstance(found, int):
            found = [found]
        if not isinstance(found, list | tuple):
            return None
        items: list[Any] = list(found)  # type: ignore[reportUnknownArgumentType]
        dims: list[Dim] = [d if isinstance(d, int | str) else None for d in items]
        return dims * count if count is not None and len(dims) == 1 else dims

    def has(self, name: str) -> bool:
        """Whether an argument is given and not None."""
        return self.value(name) is not None

    def factors(self, name: str) -> list[int] | None:
        """The elements of a list of numbers, if all are known and whole."""
        value = self.value(name)
        found = None if value is None else self._items(value)
        if found is None or not all(isinstance(f, int | float) and f == int(f) for f in found):
            return None
        return [int(f) for f in found]

    def _items(self, value: Value) -> list[Any] | None:
        tracked = self.types.contents.get(value)
        if tracked is not None:
            return list(tracked) if self.types.is_fixed(value) else None
        if value.node is None or not self.types.is_fixed(value):
            return None
        if value.node.kind == CONSTANT:
            given = value.node.attributes.get("value")
            return list(given) if isinstance(given, list | tuple) else None  # type: ignore[reportUnknownArgumentType]
        if value.node.kind != "prim::ListConstruct":
            return None
        return [None if d is UNKNOWN else d for d in map(self._dim, value.node.inputs)]

    def _dim(self, value: Value) -> Any:
        tracked = self.types.contents.get(value)
        if tracked is not None and tracked.ndim == 0:
            return tracked.item()
        return self.known(value)

    def elements(self, name: str) -> list[TensorType] | None:
        """The types of the tensors in a list that is made on the spot."""
        value = self.value(name)
        node = value.made_by("prim::ListConstruct") if value is not None and self.types.is_fixed(value) else None
        if node is None:
            return None
        types = [v.type for v in node.inputs]
        return [t if isinstance(t, TensorType) else TENSOR for t in types]

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
