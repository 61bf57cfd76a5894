"""Values of attributes from text: scalars, lists, tuples, dictionaries, tensors, types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from irc.ir import types
from irc.ir.enumerations import EnumMember
from irc.ir.limits import MAX_LITERAL_DEPTH
from irc.ir.tensor import WeightTable
from irc.ir.text.lexer import WS, Scanner, terminal
from irc.ir.text.literals import Opaque
from irc.ir.text.scalar_parser import SCALAR, scalar_value
from irc.ir.text.tensor_parser import TensorParser
from irc.ir.text.type_parser import TypeParser
from irc.ir.types import ClassType, DictType, EnumType, ListType, OptionalType, TupleType, Type

_INTS = terminal(r"\[(-?\d{1,18}(?>(?:,[ ]?-?\d{1,18})*))?\]")
_GRAPH = terminal(r"<(Graph_\d+)>")
_TYPE = terminal(rf"<Type{WS}:")
_TENSORS = terminal(r"<Tensors>")
_MEMBER = terminal(r"__torch__\.[\w.]+")
_VALUED_MEMBER = terminal(r"(__torch__\.[\w.]+)\(")
_ANNOTATE = terminal(rf"annotate{WS}\(")


@dataclass(frozen=True)
class GraphRef:
    """A reference to a graph that a later ``with`` section of the text gives, by its name there."""

    name: str


class AttributeParser:
    """Reads attribute values with a scanner.

    Args:
        scan: where to read.
        types: reads types inside values.
        weights: what ``@"name"`` refers to; weights it lacks are entered as absent tensors.
    """

    __slots__ = ("_scan", "_tensors", "_types")

    def __init__(self, scan: Scanner, types: TypeParser, weights: WeightTable) -> None:
        self._scan = scan
        self._types = types
        self._tensors = TensorParser(scan, types, weights)

    def parse(self, declared: Type | None = None) -> Any:
        """The value at the scanner's position.

        Args:
            declared: for a ``prim::Constant``, the type of its output. It tells what ``value=1`` means
                (TorchScript prints True and 1e16 as integers) and the type of tensors that do not say it.
        """
        value = self._value(declared, 1)
        return value if declared is None else coerced(value, declared)

    def _value(self, declared: Type | None, depth: int) -> Any:
        scan = self._scan
        if match := scan.take(SCALAR):
            return scalar_value(scan, match)
        if match := scan.take(_INTS):
            return list(map(int, match[1].split(","))) if match[1] else []
        if depth > MAX_LITERAL_DEPTH:
            scan.fail(f"values nest deeper than {MAX_LITERAL_DEPTH} levels", code="IRC113")
        if (tensor := self._tensors.parse(declared)) is not None:
            return tensor
        if (tensor := self._tensors.parse_display()) is not None:
            return tensor
        if scan.accept("["):
            return self._items("]", depth)
        start = scan.skip()
        if scan.accept("("):
            is_bare = scan.peek() != "<"
            items = self._items(")", depth)
            if not (is_bare and items and all(isinstance(item, Type) for item in items)):
                return tuple(items)
            scan.pos = start  # the type of a tuple, or a longer one that begins with it
            return self._types.parse()
        if scan.accept("{"):
            return self._braces(declared, depth, start)
        if depth == 1 and (match := scan.take(_GRAPH)):
            return GraphRef(match[1])
        if scan.take(_ANNOTATE):
            annotated = self._types.parse()
            scan.expect(",", "the type")
            value = coerced(self._value(annotated, depth + 1), annotated)
            scan.expect(")", "the annotated value")
            return value
        if scan.take(_TYPE):
            stated = self._types.parse()
            scan.expect(">", "the type")
            return stated
        if match := scan.take(_TENSORS):
            return Opaque(match[0].strip())
        if match := scan.take(_VALUED_MEMBER):
            return self._valued_member(match[1])
        if declared is not None and (match := scan.take(_MEMBER)):
            return EnumMember.at(match[0].strip())
        if not (scan.peek().isalpha() or scan.peek() == "_"):
            scan.fail('expected a value: a number, "string", [list], tensor, type, True, False or None')
        return self._types.parse()

    def _valued_member(self, path: str) -> EnumMember:
        """A member of an enumeration with its value; the opening parenthesis has been read."""
        scan = self._scan
        match = scan.take(SCALAR)
        value = None if match is None else scalar_value(scan, match)
        if not isinstance(value, int | float | str):
            scan.fail(f"{path} stands for a number or a string")
        scan.expect(")", "what the member stands for")
        return EnumMember.at(path, value)

    def _items(self, closing: str, depth: int) -> list[Any]:
        scan = self._scan
        items: list[Any] = []
        while not scan.accept(closing):
            items.append(self._value(None, depth + 1))
            if not scan.more(closing, "a value"):
                break
        return items

    def _braces(self, declared: Type | None, depth: int, start: int) -> Any:
        """A dictionary, or a tensor of one element; the opening brace has been read."""
        scan = self._scan
        if scan.accept("}"):
            return {}
        pos = scan.skip()
        key = self._value(None, depth + 1)
        if scan.accept("}"):
            return self._tensors.braces(key, declared, start)
        items: dict[Any, Any] = {}
        while True:
            try:
                is_known = key in items
            except TypeError:
                scan.fail(f"{key!r} cannot be a key", pos)
            if is_known:
                scan.fail(f"the key {key!r} is given twice", pos, "IRC112")
            scan.expect(":", "a key")
            items[key] = self._value(None, depth + 1)
            if not scan.more("}", "a value"):
                return items
            pos = scan.skip()
            key = self._value(None, depth + 1)


def coerced(value: Any, declared: Type) -> Any:
    """``value`` as a constant of type ``declared``: TorchScript prints True as 1 and 1e16 as 10000000000000000."""
    if type(value) is int:
        convert = _FROM_INT.get(declared)
        return value if convert is None else convert(value)
    if isinstance(declared, EnumType) and isinstance(value, ClassType):
        return EnumMember.at(value.name)  # inside of others, a member reads like a class
    if isinstance(value, TupleType) and isinstance(declared, TupleType):
        value = value.elems  # as a tuple of them does like the type of a tuple
    if isinstance(declared, OptionalType):
        return None if value is None else coerced(value, declared.elem)
    if isinstance(value, list) and isinstance(declared, ListType):
        return [coerced(item, declared.elem) for item in cast("list[Any]", value)]
    if isinstance(value, tuple) and isinstance(declared, TupleType):
        items = cast("tuple[Any, ...]", value)
        if len(items) == len(declared.elems):
            return tuple(map(coerced, items, declared.elems))
    if isinstance(value, dict) and isinstance(declared, DictType):
        pairs = cast("dict[Any, Any]", value).items()
        return {coerced(k, declared.key): coerced(v, declared.value) for k, v in pairs}
    return cast(Any, value)


_FROM_INT: dict[Type, type] = {types.FLOAT: float, types.BOOL: bool, types.COMPLEX: complex}
