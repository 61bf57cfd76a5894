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
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from irc.native.jit import process_jit
from irc.ops.algebra import AnyDType

FIELDS = 6
"""The code's address, the number of arrays, the begin and the end of the range, whether to release the lock, the bytes
of scratch memory, which the loop function gets as one more array."""

_DATA, _RANK, _SIZES, _STRIDES, _DTYPE, _FLAGS = 16, 24, 32, 40, 56, 64
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
    address = process_jit().library("irc.call", lambda: (_text(), {}))
    return _Definition(b"call", address, _METH_FASTCALL, None)


def _text() -> str:
    """The builtin: ``PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t nargs)``."""
    names = "address", "count", "begin.whole", "end.whole", "releases", "scratch.size"
    fields = "\n".join(_load(name, "ptr" if not i else "i64", "record", 8 * i) for i, name in enumerate(names))
    return f"""
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyErr_Occurred()
declare ptr @PyErr_NoMemory()
declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
declare i32 @memcmp(ptr, ptr, i64)

define ptr @irc.call(ptr %self, ptr %args, i64 %given) {{
entry:
{_load("record", "ptr", "self", _DATA)}
{fields}
  %first.expected = getelementptr i64, ptr %record, i64 {FIELDS}
{_load("array.type", "ptr", "self", 8)}
  %ranged = add i64 %count, 2
  %is.whole = icmp eq i64 %given, %count
  %is.ranged = icmp eq i64 %given, %ranged
  %is.fit = or i1 %is.whole, %is.ranged
  br i1 %is.fit, label %begin, label %refuse

begin:
  %most = add i64 %count, 1
  %pointers = alloca ptr, i64 %most
  br label %next

next:
  %i = phi i64 [0, %begin], [%i.next, %taken]
  %expected = phi ptr [%first.expected, %begin], [%expected.next, %taken]
  %is.last = icmp eq i64 %i, %count
  br i1 %is.last, label %range, label %take

take:
  %argument.at = getelementptr ptr, ptr %args, i64 %i
  %argument = load ptr, ptr %argument.at
{_load("type", "ptr", "argument", 8)}
  %is.array = icmp eq ptr %type, %array.type
  br i1 %is.array, label %look, label %refuse

look:
{_load("rank.wanted", "i64", "expected", 8)}
{_load("strided", "i64", "expected", 16)}
  %sizes.wanted = getelementptr i64, ptr %expected, i64 3
  %is.any = icmp slt i64 %rank.wanted, 0
  br i1 %is.any, label %taken, label %compare

compare:
{_load("dtype", "ptr", "argument", _DTYPE)}
{_load("word", "i64", "dtype", _TYPE)}
  %word.known = and i64 %word, {ctypes.c_int64(_TYPE_MASK).value}
  %word.wanted = load i64, ptr %expected
  %is.type = icmp eq i64 %word.known, %word.wanted
{_load("rank", "i32", "argument", _RANK)}
  %rank.wide = zext i32 %rank to i64
  %is.rank = icmp eq i64 %rank.wide, %rank.wanted
  %is.form = and i1 %is.type, %is.rank
  br i1 %is.form, label %sizes, label %refuse

sizes:
{_load("flags", "i32", "argument", _FLAGS)}
  %order = and i32 %flags, {_C_CONTIGUOUS}
  %is.ordered = icmp ne i32 %order, 0
  %is.strided = icmp ne i64 %strided, 0
  %is.lying = or i1 %is.ordered, %is.strided
{_load("sizes.given", "ptr", "argument", _SIZES)}
  %length = shl i64 %rank.wide, 3
  %sizes.differ = call i32 @memcmp(ptr %sizes.given, ptr %sizes.wanted, i64 %length)
  %is.sized = icmp eq i32 %sizes.differ, 0
  %is.same = and i1 %is.lying, %is.sized
  br i1 %is.same, label %strides, label %refuse

strides:
  %strides.wanted = getelementptr i64, ptr %sizes.wanted, i64 %rank.wide
  br i1 %is.strided, label %steps, label %taken

steps:
{_load("strides.given", "ptr", "argument", _STRIDES)}
  %strides.differ = call i32 @memcmp(ptr %strides.given, ptr %strides.wanted, i64 %length)
  %is.stepping = icmp eq i32 %strides.differ, 0
  %behind.strides = getelementptr i64, ptr %strides.wanted, i64 %rank.wide
  br i1 %is.stepping, label %taken, label %refuse

taken:
  %expected.next = phi ptr [%sizes.wanted, %look], [%strides.wanted, %strides], [%behind.strides, %steps]
{_load("data", "ptr", "argument", _DATA)}
  %pointer.at = getelementptr ptr, ptr %pointers, i64 %i
  store ptr %data, ptr %pointer.at
  %i.next = add i64 %i, 1
  br label %next

range:
  %own.at = getelementptr ptr, ptr %pointers, i64 %count
  %is.code = icmp ne ptr %address, null
  br i1 %is.code, label %which, label %accept

which:
  br i1 %is.whole, label %memory, label %numbers

numbers:
  %first.at = getelementptr ptr, ptr %args, i64 %count
  %first = load ptr, ptr %first.at
  %begin.given = call i64 @PyLong_AsLongLong(ptr %first)
  %second.at = getelementptr ptr, ptr %first.at, i64 1
  %second = load ptr, ptr %second.at
  %end.given = call i64 @PyLong_AsLongLong(ptr %second)
  br label %memory

memory:
  %begin.number = phi i64 [%begin.whole, %which], [%begin.given, %numbers]
  %end.number = phi i64 [%end.whole, %which], [%end.given, %numbers]
  %has.scratch = icmp ne i64 %scratch.size, 0
  br i1 %has.scratch, label %allocate, label %go

allocate:
  %allocated = call ptr @PyMem_RawMalloc(i64 %scratch.size)
  store ptr %allocated, ptr %own.at
  %is.allocated = icmp ne ptr %allocated, null
  br i1 %is.allocated, label %go, label %fail

go:
  %own = phi ptr [null, %memory], [%allocated, %allocate]
  %is.released = icmp ne i64 %releases, 0
  br i1 %is.released, label %released, label %held

held:
  call void %address(ptr %pointers, ptr %expected, i64 %begin.number, i64 %end.number)
  br label %done

released:
  %thread = call ptr @PyEval_SaveThread()
  call void %address(ptr %pointers, ptr %expected, i64 %begin.number, i64 %end.number)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %done

done:
  call void @PyMem_RawFree(ptr %own)
  %error = call ptr @PyErr_Occurred()
  %is.ended = icmp ne ptr %error, null
  br i1 %is.ended, label %ended, label %accept

ended:
  ret ptr null

accept:
  %true = call ptr @PyBool_FromLong(i64 1)
  ret ptr %true

refuse:
  %false = call ptr @PyBool_FromLong(i64 0)
  ret ptr %false

fail:
  %failed = call ptr @PyErr_NoMemory()
  ret ptr %failed
}}
"""


def _load(name: str, kind: str, base: str, place: int) -> str:
    """Instructions that load ``name`` from so many bytes behind the pointer ``base``."""
    return f"  %{name}.at = getelementptr i8, ptr %{base}, i64 {place}\n  %{name} = load {kind}, ptr %{name}.at"
