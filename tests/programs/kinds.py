"""What the generator of programs knows of a value before it exists: element type, shape, whether it may be written."""

from __future__ import annotations

from dataclasses import dataclass

from irc.ir import DType, Type, types
from irc.ir.types import DictType, ListType, OptionalType, TupleType

FLOAT, LONG, BOOL = DType.FLOAT, DType.INT64, DType.BOOL
KEYS = ("a", "b")
"""The keys that every dictionary of a program has."""


@dataclass(frozen=True)
class Tens:
    """A tensor; ``frozen``: it may be read-only memory, or repeat elements, so that nothing may write into it."""

    dtype: DType
    shape: tuple[int, ...]
    frozen: bool = False

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True)
class Seq:
    """A list of at least ``least`` elements of one kind."""

    elem: Kind
    least: int


@dataclass(frozen=True)
class Tup:
    elems: tuple[Kind, ...]


@dataclass(frozen=True)
class Map:
    """A dictionary with the keys ``KEYS``."""

    elem: Kind


@dataclass(frozen=True)
class Opt:
    """An optional that holds a value."""

    elem: Kind


@dataclass(frozen=True)
class Num:
    """A Python number from ``low`` to ``high``."""

    low: int
    high: int


@dataclass(frozen=True)
class Boxed:
    """A value of type Any; what it is."""

    elem: Kind


@dataclass(frozen=True)
class Bag:
    """A list of anything, itself maybe; only what its first element is is known, and that never changes."""

    first: Kind


Kind = Tens | Seq | Tup | Map | Opt | Num | Boxed | Bag


def fits(kind: Kind, wanted: Kind) -> bool:
    """Whether a value of ``kind`` may be where one of ``wanted`` is expected.

    Containers that can change must agree exactly: what one name stores, another reads.
    """
    if isinstance(kind, Tens) and isinstance(wanted, Tens):
        same = kind.dtype is wanted.dtype and kind.shape == wanted.shape
        return same and (wanted.frozen or not kind.frozen)
    if isinstance(kind, Seq) and isinstance(wanted, Seq):
        return kind.elem == wanted.elem and kind.least >= wanted.least
    if isinstance(kind, Tup) and isinstance(wanted, Tup):
        return len(kind.elems) == len(wanted.elems) and all(map(fits, kind.elems, wanted.elems))
    if isinstance(kind, Opt) and isinstance(wanted, Opt):
        return fits(kind.elem, wanted.elem)
    if isinstance(kind, Num) and isinstance(wanted, Num):
        return kind.low >= wanted.low and kind.high <= wanted.high
    return kind == wanted


def either(a: Kind, b: Kind) -> Kind | None:
    """The kind of what may be of ``a`` or of ``b``; None if there is none."""
    if isinstance(a, Tens) and isinstance(b, Tens) and (a.dtype, a.shape) == (b.dtype, b.shape):
        return Tens(a.dtype, a.shape, a.frozen or b.frozen)
    if isinstance(a, Seq) and isinstance(b, Seq) and a.elem == b.elem:
        return Seq(a.elem, min(a.least, b.least))
    if isinstance(a, Num) and isinstance(b, Num):
        return Num(min(a.low, b.low), max(a.high, b.high))
    return b if fits(a, b) else a if fits(b, a) else None


def ir_type(kind: Kind, exact: bool) -> Type:
    """The IR's type of a value of ``kind``; with shapes and element types if ``exact``."""
    match kind:
        case Tens():
            return types.tensor(kind.dtype, kind.shape) if exact else types.TENSOR
        case Seq():
            return ListType(ir_type(kind.elem, False))
        case Tup():
            return TupleType(tuple(ir_type(e, False) for e in kind.elems))
        case Map():
            return DictType(types.STR, ir_type(kind.elem, False))
        case Opt():
            return OptionalType(ir_type(kind.elem, False))
        case Num():
            return types.INT
        case Boxed():
            return types.ANY
        case Bag():
            return ListType(types.ANY)
