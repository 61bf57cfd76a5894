"""How values of attributes are printed; ``attribute_parser`` reads them back, bit for bit."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import numpy as np

from irc.ir.enumerations import EnumMember
from irc.ir.tensor import Tensor
from irc.ir.text.names import integer_text, quote
from irc.ir.text.scalar_parser import SCALAR
from irc.ir.types import DictType, DType, ListType, OptionalType, TensorType, TupleType, Type


@dataclass(frozen=True)
class Opaque:
    """A value that IR text names without giving it: ``<Tensors>``.

    Attributes:
        text: as it stands in the text.
    """

    text: str

    def __str__(self) -> str:
        return self.text


def literal_text(value: Any, declared: Type | None = None) -> str:
    """``value`` as IR text.

    Args:
        value: an attribute's value, but for graphs, which the printer numbers.
        declared: for a ``prim::Constant``, the type of its output, which the text need not repeat.
    """
    write = _WRITERS.get(value.__class__)
    if write is not None:
        return write(value)
    if isinstance(value, Tensor):
        return tensor_text(value, declared == value.type)
    if isinstance(value, Type):
        return _type_text(value, declared)
    if isinstance(value, list):
        if not value and isinstance(declared, ListType):
            return f"annotate({_python_text(declared)}, [])"  # as TorchScript does
        return f"[{', '.join(map(literal_text, cast('list[Any]', value)))}]"
    if isinstance(value, tuple):
        items = [_item_text(item) for item in cast("tuple[Any, ...]", value)]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return "{" + ", ".join(f"{literal_text(k)}: {literal_text(v)}" for k, v in pairs) + "}"
    # The verifier refuses any other value; that text cannot be read back does not keep the graph from being shown.
    return f"<{value.__class__.__module__}.{value.__class__.__qualname__}>"


def _item_text(value: Any) -> str:
    """The text of a tuple's item: types are marked, as a tuple of bare types would read as a type."""
    return f"<Type : {value}>" if isinstance(value, Type) else literal_text(value)


def _type_text(value: Type, declared: Type | None) -> str:
    """The text of a type as a value; without a mark if it cannot be read as anything else."""
    text = str(value)
    is_member = declared is not None and text.startswith("__torch__.")
    return f"<Type : {text}>" if text[0] == "(" or is_member or SCALAR.match(f"{text},") else text


def float_text(value: float) -> str:
    """The shortest decimal that reads back as ``value``, TorchScript style: ``2.``, ``1e-05``, ``-inf``.

    Subnormal numbers have all their digits, up to 767: PyTorch refuses those that its reading would round.
    """
    if value != value:
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return "nan" if bits == _QUIET_NAN else f"nan({bits:#x})"
    return _point(repr(value)) if abs(value) >= _NORMAL or value == 0 else f"{Decimal(value):e}"


_NORMAL = sys.float_info.min
_QUIET_NAN = struct.unpack("<Q", struct.pack("<d", float("nan")))[0]


def _complex_text(value: complex) -> str:
    return _complex(float_text(value.real), float_text(value.imag))


def _member_text(member: EnumMember) -> str:
    return member.path if member.value is None else f"{member.path}({literal_text(member.value)})"


_WRITERS: dict[type, Callable[[Any], str]] = {
    int: integer_text,
    float: float_text,
    str: quote,
    bool: str,
    type(None): str,
    complex: _complex_text,
    Opaque: str,
    EnumMember: _member_text,
}


def _point(text: str) -> str:
    """A number as Python and NumPy print it, the way TorchScript does: ``2.0`` is ``2.``, ``1e16`` a float too."""
    return text.removesuffix("0") if text.endswith(".0") else text


def _complex(real: str, imag: str) -> str:
    if real == "0.":
        return f"{imag}j"
    return f"{real}{'' if imag.startswith('-') else '+'}{imag}j"


def _python_text(t: Type) -> str:
    """A type in the notation that TorchScript uses inside ``annotate(...)``."""
    if isinstance(t, ListType):
        return f"List[{_python_text(t.elem)}]"
    if isinstance(t, OptionalType):
        return f"Optional[{_python_text(t.elem)}]"
    if isinstance(t, DictType):
        return f"Dict[{_python_text(t.key)}, {_python_text(t.value)}]"
    if isinstance(t, TupleType):
        return f"Tuple[{', '.join(map(_python_text, t.elems))}]"
    return "Tensor" if isinstance(t, TensorType) else str(t)


# -- tensors -----------------------------------------------------------------


def tensor_text(tensor: Tensor, typed: bool = False) -> str:
    """A tensor as IR text: ``@"name"``, ``splat(0.)``, ``tensor([1., 2.])`` or ``<Tensor>``.

    Args:
        tensor: the tensor; all its elements are written if it has no name and is no splat.
        typed: whether the type stands next to it already; else it is written too, ``splat<Float(3)>(0.)``.
    """
    if tensor.name:
        return f"@{quote(tensor.name)}" + ("" if typed else f"<{tensor.type}>")
    if tensor.is_absent:
        return "<Tensor>" if typed else f"<Tensor : {tensor.type}>"
    of_type = "" if typed else f"<{tensor.type}>"
    if tensor.is_splat:
        return f"splat{of_type}({''.join(_elements(tensor.dtype, tensor.scalar))})"
    return f"tensor{of_type}([{', '.join(_elements(tensor.dtype, tensor.numpy()))}])"


def _elements(dtype: DType, array: np.ndarray[Any, Any]) -> list[str]:
    """The elements of ``array`` in C order as text that reads back bit for bit."""
    flat = array.reshape(-1)
    if dtype is DType.STRING:
        return [quote(item if isinstance(item, str) else bytes(item).decode(errors="surrogateescape")) for item in flat]
    if dtype is DType.BOOL or dtype.is_integer:
        return [str(item) for item in (flat if dtype is DType.BOOL else map(int, flat))]
    if dtype in (DType.COMPLEX64, DType.COMPLEX128):
        return [_complex(_real_text(item.real), _real_text(item.imag)) for item in flat]
    return [_real_text(item) for item in flat]


def _real_text(item: Any) -> str:
    """A NumPy or ml_dtypes floating-point scalar as text."""
    value = float(item)
    if value != value:
        bits = int.from_bytes(item.tobytes(), sys.byteorder)
        return "nan" if item.tobytes() == item.dtype.type(float("nan")).tobytes() else f"nan({bits:#x})"
    # What NumPy or ml_dtypes print has the fewest digits, but in a notation that depends on their version: Python's is
    # used. Text is read as a double and then rounded to the dtype; in the rare case that this gives a neighbour, the
    # double itself is written, which is exact.
    shortest = float(str(item))
    exact = item.dtype.type(shortest).tobytes() == item.tobytes()
    return _point(repr(shortest if exact else value))
