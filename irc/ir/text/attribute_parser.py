"""Values of attributes from text: scalars, lists, tuples, dictionaries, tensors, types."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from irc.ir import types
from irc.ir.limits import MAX_LITERAL_DEPTH, MAX_RANK
from irc.ir.objects import EnumMember
from irc.ir.tensor import Array, Tensor, WeightTable
from irc.ir.text.lexer import SCALAR, STRING_BODY, WS, Scanner, array_of, element_value, scalar_value, terminal
from irc.ir.text.printer import Opaque
from irc.ir.text.type_parser import TypeParser
from irc.ir.types import ClassType, DictType, DType, EnumType, ListType, OptionalType, TupleType, Type
from irc.support.formatting import count

# Tensors from text: weights by name, splats, short lists of elements, and what TorchScript prints of them.


_TENSOR = terminal(
    rf'(?:@"(?P<weight>{STRING_BODY})"|(?P<form>tensor|splat)(?={WS}[<(])|(?P<typed><Tensor{WS}:)|(?P<unknown><Tensor>))'
)
_LABELS = "|".join(sorted((re.escape(d.label) for d in DType), key=len, reverse=True))
# PyTorch displays up to ten elements, with line ends turned to spaces:
# " 1  2 [ CPULongType{2} ]", "(1,.,.) =   0  0 [ CPUFloatType{1,1,2} ]".
_DISPLAY = terminal(
    r"(?P<items>(?>(?:[-+.\d,()=*\seinfa]|Columns [\d a-z]{1,20}){0,500}))"
    rf"\[[ ][A-Za-z]*?(?P<label>{_LABELS})Type\{{(?P<dims>[\d,]*)\}}[ ]\]"
)
_PLANE = re.compile(r"\([\d,.*]+\) =")
_EXACT_ITEM = re.compile(r"-?(?:\d{1,18}|inf|nan)")
_MAX_ELEMENTS = 2**63


class TensorParser:
    """Reads tensors with a scanner.

    Args:
        scan: where to read.
        types: for the types in ``tensor<Float(3)>(...)``.
        weights: what ``@"name"`` refers to; weights it lacks are entered as absent tensors.
    """

    __slots__ = ("_scan", "_types", "_weights")

    def __init__(self, scan: Scanner, types: TypeParser, weights: WeightTable) -> None:
        self._scan = scan
        self._types = types
        self._weights = weights

    def parse(self, declared: Type | None) -> Tensor | Opaque | None:
        """The tensor at the scanner's position, None if there is none.

        Args:
            declared: the type of the output beside it, for tensors that do not say their type.
        """
        scan = self._scan
        start = scan.skip()
        match = scan.take(_TENSOR)
        if match is None:
            return None
        if match["unknown"]:
            return Opaque("<Tensor>") if _exact(declared) is None else Tensor(*self._known(declared, start))
        if match["typed"]:
            return Tensor(*self._known(self._stated(), start))
        stated = self._stated() if scan.accept("<") else declared
        if match["weight"] is not None:
            return self._weight(scan.unquote(match["weight"], match.start("weight")), stated, start)
        dtype, shape = self._known(stated, start)
        scan.expect("(", match["form"])
        if match["form"] == "splat":
            tensor = Tensor.splat(dtype, shape, self._array(dtype, (), [self._element()], start))
        else:
            tensor = Tensor(dtype, shape, array=self._array(dtype, shape, self._elements(), start))
        scan.expect(")", "the contents of the tensor")
        return tensor

    def braces(self, value: Any, declared: Type | None, start: int) -> Tensor | Opaque:
        """TorchScript's ``{0.5}``, a tensor of one element, which ends at the scanner's position.

        Args:
            value: what stands between the braces; PyTorch prints complex numbers as pairs.
            declared: the type of the constant's output. If that is just ``Tensor``,
                the element type is not known, and the text is kept as it is.
            start: where the text of it starts.
        """
        if _exact(declared) is None:
            return Opaque(self._scan.text[start : self._scan.pos])
        dtype, shape = self._known(declared, start)
        return Tensor(dtype, shape, array=self._array(dtype, shape, [value], start))

    def parse_display(self) -> Tensor | None:
        """A tensor as PyTorch displays it, None if there is none.

        PyTorch rounds, and cuts off imaginary parts, so only integers are taken as contents.
        """
        scan = self._scan
        start = scan.skip()
        match = scan.take(_DISPLAY)
        if match is None:
            return None
        dtype = DType.from_label(match["label"])
        assert dtype is not None
        dims = [d for d in match["dims"].split(",") if d]
        if any(len(d) > 18 for d in dims):
            scan.fail("a dimension does not fit in 63 bits", start, "IRC113")
        shape = tuple(map(int, dims))
        self._check_rank(shape, start)
        items = _PLANE.sub(" ", match["items"]).split()
        if not all(map(_EXACT_ITEM.fullmatch, items)) or dtype in (DType.COMPLEX64, DType.COMPLEX128):
            return Tensor(dtype, shape)
        elements = [float(item) if item[-1] in "fn" else int(item) for item in items]
        return Tensor(dtype, shape, array=self._array(dtype, shape, elements, start))

    # -- parts -----------------------------------------------------------

    def _stated(self) -> Type:
        stated = self._types.parse()
        self._scan.expect(">", "the tensor's type")
        return stated

    def _known(self, stated: Type | None, pos: int) -> tuple[DType, tuple[int, ...]]:
        known = _exact(stated)
        if known is None:
            self._scan.fail("a tensor needs its exact type, as in tensor<Float(2)>([1., 2.])", pos, "IRC114")
        self._check_rank(known[1], pos)
        if math.prod(known[1]) >= _MAX_ELEMENTS:
            self._scan.fail(f"{stated} has 2**63 elements or more", pos, "IRC113")
        return known

    def _check_rank(self, shape: tuple[int, ...], pos: int) -> None:
        if len(shape) > MAX_RANK:
            self._scan.fail(f"a tensor has at most {MAX_RANK} dimensions, not {len(shape)}", pos, "IRC113")

    def _weight(self, name: str, stated: Type | None, pos: int) -> Tensor:
        found = self._weights.get(name)
        if found is None:
            found = self._weights[name] = Tensor(*self._known(stated, pos), name=name)
        elif _exact(stated) is not None and stated != found.type:
            self._scan.fail(f'weight "{name}" is {found.type}, but the text says {stated}', pos, "IRC114")
        return found

    def _elements(self) -> list[Any]:
        scan = self._scan
        scan.expect("[", "tensor(")
        return [self._element() for _ in scan.listed("]", "an element", may_end_in_comma=True)]

    def _element(self) -> Any:
        match = self._scan.take(SCALAR)
        if match is None:
            form = "a number, True, False or a string"
            if self._scan.peek() == "[":
                form = "no brackets inside, elements are in one list, row after row"
            self._scan.fail(f"expected an element: {form}")
        return element_value(self._scan, match)

    def _array(self, dtype: DType, shape: tuple[int, ...], elements: Sequence[Any], pos: int) -> Array:
        if len(elements) != math.prod(shape):
            text = f"{count(len(elements), 'element')} for a tensor of {math.prod(shape)}"
            self._scan.fail(text, pos, "IRC114")
        try:
            return array_of(dtype, elements).reshape(shape)
        except ValueError as error:
            self._scan.fail(str(error), pos, "IRC114")


def _exact(t: Type | None) -> tuple[DType, tuple[int, ...]] | None:
    """Element type and shape, if ``t`` is a tensor type that gives both entirely."""
    if t is None or t.dtype is None or (shape := t.static_shape) is None:
        return None
    return t.dtype, shape


# -- attribute parser ----------------------------------------------------------


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
        listed = self._scan.listed(closing, "a value", may_end_in_comma=True)
        return [self._value(None, depth + 1) for _ in listed]

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
    """``value`` as a constant of type ``declared``: TorchScript prints True as 1, 1e16 as an integer."""
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
