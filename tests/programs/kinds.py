"""What the generator of programs knows of a value before it exists: element type, shape, whether it may be written."""

from __future__ import annotations

from dataclasses import dataclass

from irc.ir import DType, Type, types
from irc.ir.types import DictType, ListType, OptionalType, TupleType, UnionType

FLOAT, LONG, BOOL = DType.FLOAT, DType.INT64, DType.BOOL
KEYS = ("a", "b")
"""The keys that every dictionary of a program has."""


@dataclass(frozen=True)
class Tens:
    """A tensor; ``frozen``: it may be read-only memory, repeat elements or lie backwards: nothing may write into it, or
    look at its strides."""

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
    """A value of a wide type: Any, or a union. Which of ``kinds`` it is, if they are several, only a run tells."""

    kinds: tuple[Kind, ...]
    type: Type = types.ANY


@dataclass(frozen=True)
class Bag:
    """A list of values of a wide type, itself maybe; only of the first is known what it is, and that never changes."""

    first: tuple[Kind, ...]
    type: Type = types.ANY


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
    if isinstance(kind, Bag) and isinstance(wanted, Bag):
        return kind.type == wanted.type and _among(kind.first, wanted.first)
    if isinstance(wanted, Boxed):
        return kind == wanted or (admits(wanted.type, kind) and _among(opened(kind), wanted.kinds))
    return kind == wanted


def _among(kinds: tuple[Kind, ...], wanted: tuple[Kind, ...]) -> bool:
    return all(any(fits(k, w) for w in wanted) for k in kinds)


def opened(kind: Kind) -> tuple[Kind, ...]:
    """What a value may be, whatever its type."""
    return kind.kinds if isinstance(kind, Boxed) else (kind,)


def admits(wide: Type, kind: Kind) -> bool:
    """Whether a value of ``kind`` is one of type ``wide``: Any, or a union."""
    of_type = ir_type(kind, False)
    return wide in (types.ANY, of_type) or (isinstance(wide, UnionType) and of_type in wide.members)


def either(a: Kind, b: Kind) -> Kind | None:
    """The kind of what may be of ``a`` or of ``b``; None if there is none."""
    if isinstance(a, Tens) and isinstance(b, Tens) and (a.dtype, a.shape) == (b.dtype, b.shape):
        return Tens(a.dtype, a.shape, a.frozen or b.frozen)
    if isinstance(a, Seq) and isinstance(b, Seq) and a.elem == b.elem:
        return Seq(a.elem, min(a.least, b.least))
    if isinstance(a, Num) and isinstance(b, Num):
        return Num(min(a.low, b.low), max(a.high, b.high))
    return b if fits(a, b) else a if fits(b, a) else None


def blended(a: Kind, b: Kind) -> Boxed | None:
    """The same by a union: of kinds that a run can tell apart."""
    if type(a) is type(b) or not isinstance(a, _TOLD_APART) or not isinstance(b, _TOLD_APART):
        return None
    return Boxed((a, b), UnionType(tuple(sorted((ir_type(k, False) for k in (a, b)), key=str))))


_TOLD_APART = (Tens, Seq, Tup, Map, Num)


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
            return kind.type
        case Bag():
            return ListType(kind.type)
