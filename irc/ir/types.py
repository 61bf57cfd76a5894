"""Types of IR values, in TorchScript's notation.

Every type is immutable, hashable and prints exactly as the parser reads it:
``Tensor``, ``Float(batch, 3, 224, 224)``, ``int[]``, ``(Tensor, int)``,
``Tensor?``, ``Dict(str, Tensor)``, ``Union(int, Tensor)``.

Types are unique: making a type that exists gives the existing object. So equality is
identity, and comparing or hashing a tuple of 10,000 types takes as long as an ``int``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from threading import RLock
from types import NoneType
from typing import Any, ClassVar, Self
from weakref import WeakValueDictionary

import numpy as np

from irc.errors import Error
from irc.ir.limits import MAX_SIZE
from irc.ir.polynomials import Polynomial, Size
from irc.ir.text.names import dim_text

# Element types of tensors, and the numbers by which ONNX and TorchScript know them.


class DType(Enum):
    """Element types: every ``TensorProto.DataType`` of ONNX, by TorchScript's name.

    Each member carries ``label`` (as printed), ``onnx`` (the ``TensorProto``
    number), ``numpy_name`` (a NumPy or ml_dtypes name) and ``torch`` (the number by
    which TorchScript's arguments name it, of ``c10/core/ScalarType.h``; None if none does).
    """

    FLOAT = ("Float", 1, "float32", 6)
    UINT8 = ("Byte", 2, "uint8", 0)
    INT8 = ("Char", 3, "int8", 1)
    UINT16 = ("UInt16", 4, "uint16", 27)
    INT16 = ("Short", 5, "int16", 2)
    INT32 = ("Int", 6, "int32", 3)
    INT64 = ("Long", 7, "int64", 4)
    STRING = ("String", 8, "object")
    BOOL = ("Bool", 9, "bool", 11)
    FLOAT16 = ("Half", 10, "float16", 5)
    DOUBLE = ("Double", 11, "float64", 7)
    UINT32 = ("UInt32", 12, "uint32", 28)
    UINT64 = ("UInt64", 13, "uint64", 29)
    COMPLEX64 = ("ComplexFloat", 14, "complex64", 9)
    COMPLEX128 = ("ComplexDouble", 15, "complex128", 10)
    BFLOAT16 = ("BFloat16", 16, "bfloat16", 15)
    FLOAT8E4M3FN = ("Float8_e4m3fn", 17, "float8_e4m3fn", 24)
    FLOAT8E4M3FNUZ = ("Float8_e4m3fnuz", 18, "float8_e4m3fnuz", 26)
    FLOAT8E5M2 = ("Float8_e5m2", 19, "float8_e5m2", 23)
    FLOAT8E5M2FNUZ = ("Float8_e5m2fnuz", 20, "float8_e5m2fnuz", 25)
    UINT4 = ("UInt4", 21, "uint4")
    INT4 = ("Int4", 22, "int4")
    FLOAT4E2M1 = ("Float4_e2m1fn", 23, "float4_e2m1fn")
    FLOAT8E8M0 = ("Float8_e8m0fnu", 24, "float8_e8m0fnu", 44)
    UINT2 = ("UInt2", 25, "uint2")
    INT2 = ("Int2", 26, "int2")
    FLOAT6E2M3 = ("Float6_e2m3fn", 27, "float6_e2m3fn")
    FLOAT6E3M2 = ("Float6_e3m2fn", 28, "float6_e3m2fn")

    def __init__(self, label: str, onnx: int, numpy_name: str, torch: int | None = None) -> None:
        self.label = label
        self.onnx = onnx
        self.numpy_name = numpy_name
        self.torch = torch

    def __repr__(self) -> str:
        return f"DType.{self.name}"

    # Members are singletons; hashing the value tuple on each look-up is 5x slower.
    __hash__ = object.__hash__

    @cached_property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype that holds elements of this type."""
        try:
            return np.dtype(self.numpy_name)
        except TypeError:
            import ml_dtypes  # slow to import, needed only for the rare small floats and ints

            return np.dtype(getattr(ml_dtypes, self.numpy_name))

    @cached_property
    def bits(self) -> int:
        """Bits an element takes in ONNX's raw encoding (0 for strings)."""
        if self is DType.STRING:
            return 0
        packed = {DType.UINT4: 4, DType.INT4: 4, DType.FLOAT4E2M1: 4, DType.UINT2: 2, DType.INT2: 2}
        packed |= {DType.FLOAT6E2M3: 6, DType.FLOAT6E3M2: 6}
        return packed.get(self) or self.numpy.itemsize * 8

    @property
    def is_float(self) -> bool:
        """Whether elements are real floating-point numbers."""
        return ("Float" in self.label and "Complex" not in self.label) or self in (DType.FLOAT16, DType.DOUBLE)

    @property
    def is_integer(self) -> bool:
        """Whether elements are signed or unsigned integers (bool is not)."""
        return "int" in self.numpy_name

    @staticmethod
    def from_onnx(number: int) -> DType:
        """The member with ``TensorProto`` number ``number``; KeyError if there is none."""
        return _BY_ONNX[number]

    @staticmethod
    def from_label(label: str) -> DType | None:
        """The member that prints as ``label``, or None."""
        return _BY_LABEL.get(label)

    @staticmethod
    @lru_cache
    def from_numpy(dtype: np.dtype[np.generic]) -> DType:
        """The member that holds arrays of ``dtype`` (any string dtype: STRING); KeyError if none does."""
        if dtype.kind in "OUST":
            return DType.STRING
        return _BY_NUMPY[dtype.name]


_BY_ONNX = {d.onnx: d for d in DType}
_BY_LABEL = {d.label: d for d in DType}
_BY_NUMPY = {d.numpy_name: d for d in DType}

SCALAR_TYPES = {dtype.torch: dtype for dtype in DType if dtype.torch is not None}
"""Element types by the numbers that TorchScript's arguments have for them."""


# -- types ---------------------------------------------------------------------


Dim = Size
"""One dimension: a size, a named (symbolic) size, or unknown. While types are inferred, also what is a sum of products
of others; types of values have no such."""

Shape = tuple[Dim, ...]

_existing: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()
"""(class, *parts) -> the type of that class with these parts, for as long as something refers to it."""

REMEMBERED = 1 << 14
"""How many types, the last ones asked about, have their answers kept: types include sizes, so there are ever more."""

_making = RLock()  # reentrant, as finalizers, which may make types, run at any time
"""Held while a type enters ``_existing``: two threads must not make the same one."""


class Type:
    """Base of all types. Equal types are one object.

    Attributes:
        dtype: the element type of a tensor; None where it is not known, and of all else.
        shape: the shape of a tensor, likewise.
    """

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()

    dtype: DType | None = None
    shape: Shape | None = None

    @classmethod
    def _unique(cls, *parts: Any) -> Self:
        """The type of this class whose fields are ``parts``: the existing one, or a new one if there is none."""
        key = (cls, *parts)
        try:
            found = _existing.get(key)
        except TypeError:  # not hashable, so no parts of a type: the verifier says so
            return cls._apart(*parts)
        if found is None:
            with _making:
                found = _existing.get(key)
                if found is None:
                    found = _existing[key] = cls._apart(*parts)
        return found

    @classmethod
    def _apart(cls, *parts: Any) -> Self:
        """A new object of this class whose fields are ``parts``."""
        made = object.__new__(cls)
        for field, part in zip(cls.__match_args__, parts, strict=True):
            object.__setattr__(made, field, part)
        return made

    def __reduce__(self) -> tuple[type[Type], tuple[Any, ...]]:
        return self.__class__, tuple([getattr(self, field) for field in self.__match_args__])

    @property
    def rank(self) -> int | None:
        """Number of dimensions of a tensor, or None."""
        return None if self.shape is None else len(self.shape)

    @cached_property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape of a tensor if every dimension is a known size, else None."""
        if self.shape is None:
            return None
        sizes = tuple(d for d in self.shape if isinstance(d, int))
        return sizes if len(sizes) == len(self.shape) else None

    @property
    def inner(self) -> tuple[Type, ...]:
        """The types that it is made of, such as that of a list's elements."""
        return ()

    @property
    def is_any(self) -> bool:
        """Whether values of it may be anything."""
        return False

    @cached_property
    def is_open(self) -> bool:
        """Whether its values, or what they hold, may be anything. Cached: tuples may be long."""
        return self.is_any or any(part.is_open for part in self.inner)

    def of(self, inner: Iterable[Type]) -> Type:
        """The same kind of type with the inner types ``inner``, as many as before (any number for a tuple)."""
        return self.__class__(*inner) if self.inner else self


_DTYPES = frozenset((DType, NoneType))
_SIZES = frozenset((int, str, NoneType, Polynomial))


@dataclass(frozen=True, eq=False, init=False)
class TensorType(Type):
    """A tensor; ``dtype`` and ``shape`` are None where not known."""

    dtype: DType | None = None
    shape: Shape | None = None

    def __new__(cls, dtype: DType | None = None, shape: Shape | None = None) -> Self:
        # True and 1.0 equal 1, but are no sizes: what `tensor_fault` refuses must not be taken for a type that exists.
        are_sizes = shape is None or (shape.__class__ is tuple and _SIZES.issuperset(map(type, shape)))
        if are_sizes and dtype.__class__ in _DTYPES:
            return _tensor_type(cls, dtype, shape)
        return cls._apart(dtype, shape)

    def __str__(self) -> str:
        name = self.dtype.label if self.dtype else "Tensor"
        if self.shape is None:
            return name
        return f"{name}({', '.join(map(dim_text, self.shape))})"


@lru_cache(maxsize=REMEMBERED)
def _tensor_type(cls: type[Type], dtype: DType | None, shape: Shape | None) -> Any:
    return cls._unique(dtype, shape)  # type: ignore[reportPrivateUsage]


@dataclass(frozen=True, eq=False, init=False)
class _Named(Type):
    name: str

    def __new__(cls, name: str) -> Self:
        return cls._unique(name)

    def __str__(self) -> str:
        return self.name


class PrimType(_Named):
    """A type without parameters, known by its name: ``int``, ``str``, ``Device``..."""

    @property
    def is_any(self) -> bool:
        return self.name == "Any"


@dataclass(frozen=True, eq=False, init=False)
class _OneInner(Type):
    elem: Type

    def __new__(cls, elem: Type) -> Self:
        return cls._unique(elem)

    @property
    def inner(self) -> tuple[Type, ...]:
        return (self.elem,)


class ListType(_OneInner):
    """A list; also ONNX's sequence."""

    def __str__(self) -> str:
        return f"{self.elem}[]"


class OptionalType(_OneInner):
    """A value or None; also ONNX's optional."""

    @property
    def is_any(self) -> bool:
        return self.elem.is_any

    def __str__(self) -> str:
        return f"{self.elem}?"


@dataclass(frozen=True, eq=False, init=False)
class _Several(Type):
    elems: tuple[Type, ...]

    def __new__(cls, elems: tuple[Type, ...]) -> Self:
        return cls._unique(elems)

    @property
    def inner(self) -> tuple[Type, ...]:
        return self.elems

    def of(self, inner: Iterable[Type]) -> Type:
        return self.__class__(tuple(inner))


class TupleType(_Several):
    """A fixed number of values of their own types."""

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.elems))})"


class UnionType(_Several):
    """One of several types."""

    @property
    def members(self) -> tuple[Type, ...]:
        """The types of which values are one."""
        return self.elems

    @property
    def is_any(self) -> bool:
        return any(member.is_any for member in self.elems)

    def __str__(self) -> str:
        return f"Union({', '.join(map(str, self.elems))})"


@dataclass(frozen=True, eq=False, init=False)
class DictType(Type):
    """A dictionary; also ONNX's map."""

    key: Type
    value: Type

    def __new__(cls, key: Type, value: Type) -> Self:
        return cls._unique(key, value)

    @property
    def inner(self) -> tuple[Type, ...]:
        return self.key, self.value

    def __str__(self) -> str:
        return f"Dict({self.key}, {self.value})"


class FutureType(_OneInner):
    """The result of an asynchronous call."""

    def __str__(self) -> str:
        return f"Future({self.elem})"


class ClassType(_Named):
    """An object of a named class, ``__torch__.pkg.Name``; attributes may be known to the module.

    TorchScript's classes have no bases. An interface, ``InterfaceType<Name>``, may be any of them.
    """

    @property
    def is_interface(self) -> bool:
        """Whether objects of any class may be of this type."""
        return self.name.startswith("InterfaceType<")


class EnumType(_Named):
    """An enumeration ``__torch__.pkg.Name``; its values are its members."""

    def __str__(self) -> str:
        return f"Enum<{self.name}>"


class TypeVar(_Named):
    """A type variable in a schema, such as ``t`` in ``t[]``."""


TENSOR = TensorType()
INT = PrimType("int")
FLOAT = PrimType("float")
BOOL = PrimType("bool")
STR = PrimType("str")
COMPLEX = PrimType("complex")
SCALAR = PrimType("Scalar")
NUMBERS = (INT, FLOAT, BOOL, COMPLEX, SCALAR)
NONE = PrimType("NoneType")
ANY = PrimType("Any")
DEVICE = PrimType("Device")
FUNCTION = PrimType("Function")


def tensor(dtype: DType | None = None, shape: Iterable[Dim] | None = None) -> TensorType:
    """``TensorType(dtype, tuple(shape))``, checked: Error IRC214 if there are no tensors of that type."""
    made = TensorType(dtype, None if shape is None else tuple(shape))
    fault = tensor_fault(made)
    if fault is not None:
        raise Error("IRC214", fault)
    return made


def tensor_fault(type: TensorType) -> str | None:
    """What is wrong with the parts of ``type``, which may be any objects; None if nothing is."""
    if type.dtype.__class__ not in (DType, NoneType):
        return f"the element type of a tensor is a DType, or None where it is not known, not {type.dtype!r}"
    if not isinstance(type.shape, tuple | NoneType):  # type: ignore[reportUnnecessaryIsInstance]
        return f"the shape of a tensor is a tuple, or None where it is not known, not {type.shape!r}"
    for size in type.shape or ():
        if size.__class__ is int:
            if not 0 <= size <= MAX_SIZE:  # type: ignore[reportOperatorIssue]
                return f"a size is 0 or more and below 2**63 (None where it is not known), not {dim_text(size)}"
        elif size is not None and not isinstance(size, str):
            return f"a size is an integer, a name, or None where it is not known, not {size!r}"
    return None


@lru_cache(maxsize=REMEMBERED)
def without_names(type: Type) -> Type:
    """``type`` without named sizes: a name belongs to one graph and may mean another size elsewhere."""
    if type.shape is None or all(d is None or isinstance(d, int) for d in type.shape):
        return type
    return TensorType(type.dtype, tuple([d if isinstance(d, int) else None for d in type.shape]))


@lru_cache(maxsize=REMEMBERED)
def without_shapes(type: Type) -> Type:
    """``type`` with no shapes, at any depth: what stays true of values whose shapes may change."""
    return rebuilt(type, lambda part: TensorType(part.dtype) if isinstance(part, TensorType) else part)


@lru_cache(maxsize=REMEMBERED)
def without_facts(type: Type) -> Type:
    """``type`` with nothing said of tensors, at any depth: what always stays true."""
    return rebuilt(type, lambda part: TENSOR if isinstance(part, TensorType) else part)


@lru_cache(maxsize=REMEMBERED)
def with_plain_sizes(type: Type) -> Type:
    """``type`` with only numbers and names as sizes, as types of values have them."""
    return rebuilt(type, _with_plain_sizes)


def _with_plain_sizes(type: Type) -> Type:
    if type.shape is None or not any(isinstance(d, Polynomial) for d in type.shape):
        return type
    return TensorType(type.dtype, tuple([None if isinstance(d, Polynomial) else d for d in type.shape]))


def rebuilt(type: Type, change: Callable[[Type], Type]) -> Type:
    """``type`` with ``change`` applied to every type in it, and then to itself."""
    inner = type.inner
    return change(type.of([rebuilt(part, change) for part in inner]) if inner else type)


def merged(a: Type, b: Type, merge: Callable[[TensorType, TensorType], TensorType]) -> Type:
    """``a`` with each tensor type replaced by ``merge`` of it and the type at the same place in ``b``.

    Where the two are of different kinds, or unions, whose members have no places, the type of ``a`` stays.
    """
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return merge(a, b)
    if a.__class__ is not b.__class__ or isinstance(a, UnionType) or len(a.inner) != len(b.inner):
        return a
    return a.of([merged(x, y, merge) for x, y in zip(a.inner, b.inner, strict=True)])


@lru_cache(maxsize=REMEMBERED)
def refined(known: Type, other: Type) -> Type:
    """``known`` with open parts filled in from ``other``; a number also replaces a named size."""
    return merged(known, other, _refined)


def _refined(known: TensorType, other: TensorType) -> TensorType:
    shape = other.shape if known.shape is None else known.shape
    if shape is not None and other.shape is not None and len(shape) == len(other.shape):
        shape = tuple([_better(a, b) for a, b in zip(shape, other.shape, strict=True)])
    return TensorType(known.dtype or other.dtype, shape)


def _better(a: Dim, b: Dim) -> Dim:
    return b if a is None or (isinstance(a, str) and isinstance(b, int)) else a


def may_be_equal(a: TensorType, b: TensorType) -> bool:
    """Whether some tensor is of both types: a dimension without a number may have any size."""
    if a.dtype is not None and b.dtype is not None and a.dtype is not b.dtype:
        return False
    if a.shape is None or b.shape is None:
        return True
    pairs = zip(a.shape, b.shape)
    return len(a.shape) == len(b.shape) and all(m == n for m, n in pairs if isinstance(m, int) and isinstance(n, int))


def join(a: Type, b: Type) -> Type | None:
    """The most exact type covering ``a`` and ``b``; None if they differ in kind (a tensor and a list)."""
    if a == b:
        return a
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        dtype = a.dtype if a.dtype is b.dtype else None
        if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
            return TensorType(dtype)
        return TensorType(dtype, tuple([x if x == y else None for x, y in zip(a.shape, b.shape, strict=True)]))
    if NONE in (a, b) or isinstance(a, OptionalType) or isinstance(b, OptionalType):
        # A plain value is one of its optional type, and so is None.
        first, second = (t.elem if isinstance(t, OptionalType) else t for t in (a, b))
        elem = second if first == NONE else first if second == NONE else join(first, second)
        return None if elem is None else OptionalType(elem)
    if isinstance(a, ListType) and isinstance(b, ListType):
        elem = join(a.elem, b.elem)
        return None if elem is None else ListType(elem)
    if isinstance(a, DictType) and isinstance(b, DictType) and a.key == b.key:
        value = join(a.value, b.value)
        return None if value is None else DictType(a.key, value)
    return None


# What values of a type may be, one by one, and which types may be one and the same.
#
# An optional value is the value itself or None, a union one of its members, so both dissolve: a type is a set of
# *parts*.


IMMUTABLE = frozenset("int float bool str complex Device NoneType Function Enum AnyEnumType Stream Dimname".split())
"""Names of types whose values cannot be written to, so that sharing them cannot be observed."""

_SYNONYMS = {
    "Scalar": ("int", "float", "bool", "complex"),
    "number": ("int", "float", "bool", "complex"),
    **dict.fromkeys(("SymInt", "Layout", "ScalarType", "MemoryFormat", "QScheme"), ("int",)),
    "SymFloat": ("float",),
    "SymBool": ("bool",),
}


@lru_cache(maxsize=REMEMBERED)
def parts(type: Type) -> tuple[Type, ...]:
    """What a value of ``type`` may be: never an optional or a union, tensors without shape."""
    found: dict[Type, None] = {}
    pending = [type]
    while pending:
        t = pending.pop()
        if isinstance(t, TensorType):
            found[TENSOR] = None
        elif isinstance(t, OptionalType):
            pending += (t.elem, NONE)
        elif isinstance(t, UnionType):
            pending += t.members
        elif isinstance(t, PrimType):
            if t.name in _SYNONYMS:
                found.update(dict.fromkeys(PrimType(name) for name in _SYNONYMS[t.name]))
            else:
                found[t if t.name in IMMUTABLE else ANY] = None  # Any, or a type that irc does not know
        elif isinstance(t, TypeVar):
            found[ANY] = None
        else:
            found[t.of([union_of(parts(inner)) for inner in t.inner])] = None
    return (ANY,) if ANY in found else tuple(sorted(found, key=str))


@lru_cache(maxsize=REMEMBERED)
def may_be_one_type(a: Type, b: Type) -> bool:
    """Whether ``a`` and ``b`` may be one type, if each ``Any`` and interface in them stands for some type."""
    s, t = parts(a), parts(b)
    if s == t or ANY in s or ANY in t:
        return True
    return all(any(_may_be_one_part(x, y) for y in t) for x in s) and all(
        any(_may_be_one_part(x, y) for x in s) for y in t
    )


def _may_be_one_part(a: Type, b: Type) -> bool:
    if isinstance(a, ClassType) and isinstance(b, ClassType):
        return a == b or a.is_interface or b.is_interface
    if a.__class__ is not b.__class__ or not a.inner or len(a.inner) != len(b.inner):
        return a == b
    return all(map(may_be_one_type, a.inner, b.inner))


@lru_cache(maxsize=REMEMBERED)
def is_definite(type: Type) -> bool:
    """Whether no part of ``type`` stands for types that it does not name, as ``Any`` and interfaces do."""
    pending, seen = [*parts(type)], set[Type]()
    while pending:
        t = pending.pop()
        if t.is_any or (isinstance(t, ClassType) and t.is_interface):
            return False
        if t not in seen:
            seen.add(t)
            pending += t.inner
    return True


def union_of(members: tuple[Type, ...]) -> Type:
    """The type of what is of one of ``members``."""
    return members[0] if len(members) == 1 else UnionType(members)


# -- which types of values are allowed where a given type is expected ----------


Bindings = dict[str, Type]
"""What the type variables of a schema stand for."""


def accepts(formal: Type, actual: Type, bindings: Bindings | None = None) -> bool:
    """Whether a value of type ``actual`` may stand where ``formal`` is expected.

    False only where the types contradict each other: what is not known
    (``Any``, ``Tensor`` without a shape, named dimensions, members of unions,
    what an optional holds) is taken to agree. (Which overload is meant asks
    for more: that every value fits, `irc.ops.signatures.matches`.)

    Args:
        formal: the type expected; type variables in it are bound at their first use.
        actual: the type at hand.
        bindings: the type variables bound so far; updated.
    """
    if formal == actual or ANY in (formal, actual) or isinstance(actual, TypeVar):
        return True
    if isinstance(formal, TypeVar):
        if bindings is None:
            return True
        bound = bindings.setdefault(formal.name, actual)
        return accepts(bound, actual) or accepts(actual, bound)
    if isinstance(formal, TensorType) and isinstance(actual, TensorType):
        return may_be_equal(formal, actual)
    if isinstance(formal, OptionalType):
        return actual == NONE or accepts(formal.elem, _inside(actual), bindings)
    if isinstance(actual, UnionType):
        return any(accepts(formal, member, bindings) for member in actual.members)
    if isinstance(formal, UnionType):
        return any(accepts(member, actual, bindings) for member in formal.members)
    if isinstance(actual, OptionalType):
        return formal == NONE or accepts(formal, actual.elem, bindings)
    return _parts_agree(formal, actual, bindings)


def _inside(t: Type) -> Type:
    return t.elem if isinstance(t, OptionalType) else t


def _parts_agree(formal: Type, actual: Type, bindings: Bindings | None) -> bool:
    if formal.inner and formal.__class__ is actual.__class__:
        if isinstance(formal, ListType | DictType):
            # A list of tensors is not a list of optional tensors: one could put None into it.
            inner = [_bound(part, bindings) for part in formal.inner] if bindings else formal.inner
            if not all(map(may_be_one_type, inner, actual.inner)):
                return False
        agree = (accepts(f, a, bindings) for f, a in zip(formal.inner, actual.inner))
        return len(formal.inner) == len(actual.inner) and all(agree)
    if isinstance(formal, ClassType) and isinstance(actual, ClassType):
        return formal.is_interface or actual.is_interface  # text does not tell which class has which interface
    if formal == SCALAR or actual == SCALAR:
        return formal in NUMBERS and actual in NUMBERS
    return formal == FLOAT and actual == INT


def _bound(type: Type, bindings: Bindings) -> Type:
    """``type``, with what its variables stand for."""
    return rebuilt(type, lambda part: bindings.get(part.name, part) if isinstance(part, TypeVar) else part)
