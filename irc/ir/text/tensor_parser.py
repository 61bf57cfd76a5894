"""Tensors from text: weights by name, splats, short lists of elements, and what TorchScript prints of them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from irc.ir.limits import MAX_RANK
from irc.ir.tensor import Array, Tensor, WeightTable
from irc.ir.text.lexer import STRING_BODY, WS, Scanner, terminal
from irc.ir.text.literals import Opaque
from irc.ir.text.scalar_parser import SCALAR, element_value
from irc.ir.text.tensor_elements import array_of
from irc.ir.text.type_parser import TypeParser
from irc.ir.types import DType, Type
from irc.support.formatting import count

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
        elements: list[Any] = []
        while not scan.accept("]"):
            elements.append(self._element())
            if not scan.more("]", "an element"):
                break
        return elements

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
