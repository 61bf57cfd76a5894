"""Calls of native functions from Python, by a builtin that is itself emitted.

A native *loop function* is ``void f(ptr arrays, ptr layout, i64 begin, i64 end)``: where its arrays begin, numbers that
it was made for, and the range of work that it is to do.

A *call* is a builtin function whose ``self`` is an array of int64, the *record*: see `FIELDS`, then the layout. It
takes the arrays, operands and then results, and maybe the begin and the end of a range. It takes 0.1 µs.

Invariants:

- Fields of array objects are read by their offsets in NumPy's ABI (ndarraytypes.h, PyArrayObject_fields), which is the
  same for all of NumPy 2. An argument that is no array of exactly NumPy's type is refused, not read.
- Element types and shapes are the caller's to check: a kernel is made for them.
- A loop function that `irc.native.loops.pause` has ended leaves an exception, which the call then raises.
- The record is alive as long as the builtin, which holds it; it says nothing of who holds the code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from irc.native.jit import process_jit

FIELDS = 6
"""The code's address, the number of arrays, whether they have to be in C order, whether to release the lock, the begin
and the end of the range. The layout follows."""

_DATA, _FLAGS = 16, 64
"""Offsets in an array object: its data, its flags."""

_C_CONTIGUOUS = 1
_METH_FASTCALL = 0x80


class _Definition(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def call_of(
    address: int, arrays: int, layout: Sequence[int], end: int, *, is_in_order: bool, releases: bool
) -> Callable[..., bool]:
    """A function of so many arrays that calls the loop function at ``address``, and returns True.

    It returns False, and does nothing, if an argument is no array, or not in C order though that was asked for.

    Args:
        address: of the code, which the caller keeps.
        arrays: how many the function has.
        layout: what it was made for.
        end: of the whole range.
        is_in_order: whether the arrays have to be in C order.
        releases: whether other Python threads may run meanwhile; to let them takes 0.05 µs.
    """
    record = np.array([address, arrays, is_in_order, releases, 0, end, *layout], np.int64)
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
    return f"""
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyErr_Occurred()

define ptr @irc.call(ptr %self, ptr %args, i64 %given) {{
entry:
  %self.data = getelementptr i8, ptr %self, i64 {_DATA}
  %record = load ptr, ptr %self.data
  %address = load ptr, ptr %record
  %count.at = getelementptr i64, ptr %record, i64 1
  %count = load i64, ptr %count.at
  %ordered.at = getelementptr i64, ptr %record, i64 2
  %ordered = load i64, ptr %ordered.at
  %releases.at = getelementptr i64, ptr %record, i64 3
  %releases = load i64, ptr %releases.at
  %begin.at = getelementptr i64, ptr %record, i64 4
  %begin.whole = load i64, ptr %begin.at
  %end.at = getelementptr i64, ptr %record, i64 5
  %end.whole = load i64, ptr %end.at
  %layout = getelementptr i64, ptr %record, i64 {FIELDS}
  %array.type.at = getelementptr i8, ptr %self, i64 8
  %array.type = load ptr, ptr %array.type.at
  %ranged = add i64 %count, 2
  %is.whole = icmp eq i64 %given, %count
  %is.ranged = icmp eq i64 %given, %ranged
  %is.fit = or i1 %is.whole, %is.ranged
  br i1 %is.fit, label %begin, label %refuse

begin:
  %pointers = alloca ptr, i64 %count
  br label %next

next:
  %i = phi i64 [0, %begin], [%i.next, %taken]
  %is.last = icmp eq i64 %i, %count
  br i1 %is.last, label %range, label %take

take:
  %argument.at = getelementptr ptr, ptr %args, i64 %i
  %argument = load ptr, ptr %argument.at
  %type.at = getelementptr i8, ptr %argument, i64 8
  %type = load ptr, ptr %type.at
  %is.array = icmp eq ptr %type, %array.type
  br i1 %is.array, label %look, label %refuse

look:
  %flags.at = getelementptr i8, ptr %argument, i64 {_FLAGS}
  %flags = load i32, ptr %flags.at
  %order = and i32 %flags, {_C_CONTIGUOUS}
  %wide = zext i32 %order to i64
  %is.ordered = icmp uge i64 %wide, %ordered
  br i1 %is.ordered, label %taken, label %refuse

taken:
  %data.at = getelementptr i8, ptr %argument, i64 {_DATA}
  %data = load ptr, ptr %data.at
  %pointer.at = getelementptr ptr, ptr %pointers, i64 %i
  store ptr %data, ptr %pointer.at
  %i.next = add i64 %i, 1
  br label %next

range:
  br i1 %is.whole, label %go, label %numbers

numbers:
  %first.at = getelementptr ptr, ptr %args, i64 %count
  %first = load ptr, ptr %first.at
  %begin.given = call i64 @PyLong_AsLongLong(ptr %first)
  %second.at = getelementptr ptr, ptr %first.at, i64 1
  %second = load ptr, ptr %second.at
  %end.given = call i64 @PyLong_AsLongLong(ptr %second)
  br label %go

go:
  %begin.number = phi i64 [%begin.whole, %range], [%begin.given, %numbers]
  %end.number = phi i64 [%end.whole, %range], [%end.given, %numbers]
  %is.released = icmp ne i64 %releases, 0
  br i1 %is.released, label %released, label %held

held:
  call void %address(ptr %pointers, ptr %layout, i64 %begin.number, i64 %end.number)
  br label %done

released:
  %thread = call ptr @PyEval_SaveThread()
  call void %address(ptr %pointers, ptr %layout, i64 %begin.number, i64 %end.number)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %done

done:
  %error = call ptr @PyErr_Occurred()
  %is.ended = icmp ne ptr %error, null
  br i1 %is.ended, label %ended, label %made

ended:
  ret ptr null

made:
  %true = call ptr @PyBool_FromLong(i64 1)
  ret ptr %true

refuse:
  %false = call ptr @PyBool_FromLong(i64 0)
  ret ptr %false
}}
"""
