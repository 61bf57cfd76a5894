"""Element types of tensors, and the numbers by which ONNX and TorchScript know them."""

from __future__ import annotations

from enum import Enum
from functools import cached_property

import numpy as np


class DType(Enum):
    """Element types: every ``TensorProto.DataType`` of ONNX, by TorchScript's name.

    Each member carries ``label`` (as printed), ``onnx`` (the ``TensorProto``
    number) and ``numpy_name`` (a NumPy or ml_dtypes name).
    """

    FLOAT = ("Float", 1, "float32")
    UINT8 = ("Byte", 2, "uint8")
    INT8 = ("Char", 3, "int8")
    UINT16 = ("UInt16", 4, "uint16")
    INT16 = ("Short", 5, "int16")
    INT32 = ("Int", 6, "int32")
    INT64 = ("Long", 7, "int64")
    STRING = ("String", 8, "object")
    BOOL = ("Bool", 9, "bool")
    FLOAT16 = ("Half", 10, "float16")
    DOUBLE = ("Double", 11, "float64")
    UINT32 = ("UInt32", 12, "uint32")
    UINT64 = ("UInt64", 13, "uint64")
    COMPLEX64 = ("ComplexFloat", 14, "complex64")
    COMPLEX128 = ("ComplexDouble", 15, "complex128")
    BFLOAT16 = ("BFloat16", 16, "bfloat16")
    FLOAT8E4M3FN = ("Float8_e4m3fn", 17, "float8_e4m3fn")
    FLOAT8E4M3FNUZ = ("Float8_e4m3fnuz", 18, "float8_e4m3fnuz")
    FLOAT8E5M2 = ("Float8_e5m2", 19, "float8_e5m2")
    FLOAT8E5M2FNUZ = ("Float8_e5m2fnuz", 20, "float8_e5m2fnuz")
    UINT4 = ("UInt4", 21, "uint4")
    INT4 = ("Int4", 22, "int4")
    FLOAT4E2M1 = ("Float4_e2m1fn", 23, "float4_e2m1fn")
    FLOAT8E8M0 = ("Float8_e8m0fnu", 24, "float8_e8m0fnu")
    UINT2 = ("UInt2", 25, "uint2")
    INT2 = ("Int2", 26, "int2")
    FLOAT6E2M3 = ("Float6_e2m3fn", 27, "float6_e2m3fn")
    FLOAT6E3M2 = ("Float6_e3m2fn", 28, "float6_e3m2fn")

    def __init__(self, label: str, onnx: int, numpy_name: str) -> None:
        self.label = label
        self.onnx = onnx
        self.numpy_name = numpy_name

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
    def from_numpy(dtype: np.dtype[np.generic]) -> DType:
        """The member that holds arrays of ``dtype`` (any string dtype: STRING); KeyError if none does."""
        if dtype.kind in "OUST":
            return DType.STRING
        return _BY_NUMPY[dtype.name]


_BY_ONNX = {d.onnx: d for d in DType}
_BY_LABEL = {d.label: d for d in DType}
_BY_NUMPY = {d.numpy_name: d for d in DType}

SCALAR_TYPES: dict[int, DType] = {
    0: DType.UINT8,
    1: DType.INT8,
    2: DType.INT16,
    3: DType.INT32,
    4: DType.INT64,
    5: DType.FLOAT16,
    6: DType.FLOAT,
    7: DType.DOUBLE,
    9: DType.COMPLEX64,
    10: DType.COMPLEX128,
    11: DType.BOOL,
    15: DType.BFLOAT16,
    23: DType.FLOAT8E5M2,
    24: DType.FLOAT8E4M3FN,
    25: DType.FLOAT8E5M2FNUZ,
    26: DType.FLOAT8E4M3FNUZ,
    27: DType.UINT16,
    28: DType.UINT32,
    29: DType.UINT64,
    44: DType.FLOAT8E8M0,
}
"""The numbers by which TorchScript's arguments name element types (c10/core/ScalarType.h)."""
