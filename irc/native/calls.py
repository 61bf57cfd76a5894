"""Calls of native functions from Python, by a builtin that is itself emitted.

A native *loop function* is ``void f(ptr arrays, ptr layout, i64 begin, i64 end)``: where its arrays begin, numbers that
it was made for, and the range of work that it is to do.

A *call* is a builtin function whose ``self`` is an array of int64, the *record*: see `FIELDS`, then what is expected
of each array (`Expected`), then the layout. It takes the arrays, operands and then results, and maybe the begin and the
end of a range. It takes 0.1 µs.

Invariants:

- Fields of array objects and of element types are read by their offsets in NumPy's ABI (ndarraytypes.h,
  PyArrayObject_fields and PyArray_Descr), which are the same for all of NumPy 2. An argument that is no array of
  exactly NumPy's type is refused, not read.
- A call refuses arrays of other element types, shapes or strides than it was made for, so whoever has called it last
  may call it again with whatever there is. Where an array is not said to be expected in any way, that is the caller's
  to check.
- A loop function that `irc.native.loops.pause` has ended leaves an exception, which the call then raises.
- The record is alive as long as the builtin, which holds it; it says nothing of who holds the code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from irc.native.jit import process_jit
from irc.native.loops import INT, POINTER, VOID, function, loop, number, offset
from irc.native.target import ir
from irc.ops.algebra import AnyDType

FIELDS = 6
"""The code's address, the number of arrays, the begin and the end of the range, whether to release the lock, the bytes
of scratch memory, which the loop function gets as one more array."""

_CLASS, _DATA, _RANK, _SIZES, _STRIDES, _DTYPE, _FLAGS = 8, 16, 24, 32, 40, 56, 64
"""Offsets in an array object."""

_TYPE = 24
"""The offset of 8 bytes in an element type: its kind, letter and byte order, a byte without meaning, its number."""

_TYPE_MASK = 0xFFFFFFFF_00FFFFFF
_C_CONTIGUOUS = 1
_METH_FASTCALL = 0x80


class Expected(NamedTuple):
    """What a call is made for.

    Attributes:
        dtype: the element type.
        shape: the shape.
        strides: the strides; None: those of an array in C order.
    """

    dtype: AnyDType
    shape: Sequence[int]
    strides: Sequence[int] | None = None

    @property
    def record(self) -> list[int]:
        """The numbers that a call compares: the type, the axes, whether strides follow, sizes, strides."""
        word = ctypes.c_uint64.from_address(id(self.dtype) + _TYPE).value & _TYPE_MASK
        signed = ctypes.c_int64(word).value
        return [signed, len(self.shape), self.strides is not None, *self.shape, *(self.strides or ())]


_ANY = [0, -1, 0]
"""The record of an array that the caller checks."""


class _Definition(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def call_of(
    address: int,
    arrays: Sequence[Expected | None],
    layout: Sequence[int],
    end: int,
    *,
    releases: bool,
    scratch: int = 0,
) -> Callable[..., bool]:
    """A function of arrays that calls the loop function at ``address``, and returns True.

    It returns False, and does nothing, if an argument is not as it was expected.

    Args:
        address: of the code, which the caller keeps; 0: there is nothing to call, only to look at the arrays.
        arrays: what is expected of each; None: an array that the caller has checked.
        layout: what the code was made for.
        end: of the whole range.
        releases: whether other Python threads may run meanwhile; to let them takes 0.05 µs.
        scratch: bytes of memory that the function gets as its last array; 0: it has no such.
    """
    expected = [n for each in arrays for n in (_ANY if each is None else each.record)]
    record = np.array([address, len(arrays), 0, end, releases, scratch, *expected, *layout], np.int64)
    return _new(ctypes.addressof(_definition()), record, None)


_new: Any = ctypes.pythonapi.PyCFunction_NewEx
_new.restype = ctypes.py_object
_new.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)


@cache
def _definition() -> _Definition:
    return _Definition(b"call", process_jit().library("irc.call", _emit), _METH_FASTCALL, None)


def _emit() -> tuple[str, Mapping[str, Any]]:
    """The builtin: ``PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t nargs)``."""
    made, builder = function("irc.call", [POINTER, POINTER, INT], POINTER)
    own, arguments, given = made.args
    zero, none, narrow = number(0), ir.Constant(POINTER, None), ir.IntType(32)
    code_type = ir.FunctionType(VOID, [POINTER, POINTER, INT, INT])

    def read(pointer: Any, place: Any, kind: Any = INT) -> Any:
        return builder.load(offset(builder, pointer, number(place) if isinstance(place, int) else place), typ=kind)

    def call(name: str, result: Any, *operands: Any) -> Any:
        kind = ir.FunctionType(result, [x.type for x in operands])
        return builder.call(made.module.globals.get(name) or ir.Function(made.module, kind, name), operands)

    def is_same(x: Any, y: Any) -> Any:
        return builder.icmp_unsigned("==", x, y)

    def is_set(x: Any) -> Any:
        return builder.icmp_unsigned("!=", x, ir.Constant(x.type, None))

    def refuse_unless(condition: Any) -> None:
        with builder.if_then(builder.not_(condition), likely=False):
            builder.ret(call("PyBool_FromLong", POINTER, zero))

    def equal_numbers(array: Any, place: int, wanted: Any, length: Any) -> Any:
        return builder.not_(is_set(call("memcmp", narrow, read(array, place, POINTER), wanted, length)))

    record, array_type = read(own, _DATA, POINTER), read(own, _CLASS, POINTER)
    address, count, first, last, releases, scratch = (read(record, 8 * i) for i in range(FIELDS))
    is_whole = is_same(given, count)
    refuse_unless(builder.or_(is_whole, is_same(given, builder.add(count, number(2)))))
    pointers = builder.alloca(POINTER, builder.add(count, number(1)))
    at, begin, end, thread = (builder.alloca(kind) for kind in (POINTER, INT, INT, POINTER))
    builder.store(offset(builder, record, number(8 * FIELDS)), at)  # what is expected of the next array
    with loop(builder, zero, count) as i:
        place = builder.mul(i, number(8))
        array, expected = read(arguments, place, POINTER), builder.load(at)
        refuse_unless(is_same(read(array, _CLASS, POINTER), array_type))
        rank, is_strided, wanted = read(expected, 8), is_set(read(expected, 16)), offset(builder, expected, number(24))
        builder.store(wanted, at)
        with builder.if_then(builder.icmp_signed(">=", rank, zero)):
            word = builder.and_(read(read(array, _DTYPE, POINTER), _TYPE), number(ctypes.c_int64(_TYPE_MASK).value))
            is_of_rank = is_same(builder.zext(read(array, _RANK, narrow), INT), rank)
            refuse_unless(builder.and_(is_same(word, read(expected, 0)), is_of_rank))
            length = builder.shl(rank, number(3))
            is_ordered = is_set(builder.and_(read(array, _FLAGS, narrow), ir.Constant(narrow, _C_CONTIGUOUS)))
            refuse_unless(builder.or_(is_ordered, is_strided))
            refuse_unless(equal_numbers(array, _SIZES, wanted, length))
            wanted = offset(builder, wanted, length)
            builder.store(wanted, at)
            with builder.if_then(is_strided):
                refuse_unless(equal_numbers(array, _STRIDES, wanted, length))
                builder.store(offset(builder, wanted, length), at)
        builder.store(read(array, _DATA, POINTER), offset(builder, pointers, place))
    with builder.if_then(is_set(address)):
        builder.store(first, begin)
        builder.store(last, end)
        behind = builder.mul(count, number(8))
        with builder.if_then(builder.not_(is_whole)):
            for i, number_at in enumerate((begin, end)):
                argument = read(offset(builder, arguments, behind), 8 * i, POINTER)
                builder.store(call("PyLong_AsLongLong", INT, argument), number_at)
        own_at = offset(builder, pointers, behind)
        builder.store(none, own_at)
        with builder.if_then(is_set(scratch)):
            memory = call("PyMem_RawMalloc", POINTER, scratch)
            with builder.if_then(builder.not_(is_set(memory)), likely=False):
                builder.ret(call("PyErr_NoMemory", POINTER))
            builder.store(memory, own_at)
        with builder.if_then(is_set(releases)):
            builder.store(call("PyEval_SaveThread", POINTER), thread)
        code = builder.inttoptr(address, code_type.as_pointer())
        builder.call(code, [pointers, builder.load(at), builder.load(begin), builder.load(end)])
        with builder.if_then(is_set(releases)):
            call("PyEval_RestoreThread", VOID, builder.load(thread))
        call("PyMem_RawFree", VOID, builder.load(own_at, typ=POINTER))
        with builder.if_then(is_set(call("PyErr_Occurred", POINTER)), likely=False):
            builder.ret(none)
    builder.ret(call("PyBool_FromLong", POINTER, number(1)))
    return str(made.module), {}
