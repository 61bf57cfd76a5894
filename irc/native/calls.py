"""Calls of native functions from Python, by a builtin that is itself emitted.

A native *loop function* is ``void f(ptr arrays, ptr layout, i64 begin, i64 end)``: where its arrays begin, numbers that
it was made for, and the range of work that it is to do.

A *call* is a builtin function whose ``self`` is an array of int64, the *record*: see `FIELDS`, then what is expected
of each array (`Expected`), then the layout. It takes the arrays, operands and then results, and maybe the begin and the
end of a range. It takes 0.1 µs.

Invariants:

- Fields of array objects and of element types are read by their offsets in NumPy's ABI (ndarraytypes.h,
  PyArrayObject_fields and PyArray_Descr), which are the same for all of NumPy 2. An argument that is not an array of
  exactly NumPy's type is refused, not read.
- A call refuses arrays of other element types, shapes or strides than it was made for, so whoever has called it last
  may call it again with whatever there is. Where an array is not said to be expected in any way, that is the caller's
  to check.
- A loop function that `irc.native.loops.pause` has ended leaves an exception, which the call then raises.
- The record is alive as long as the builtin, which holds it; it says nothing of who holds the code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native.jit import Make, process_jit
from irc.native.loops import INT, POINTER, VOID, function, loop, number, offset
from irc.native.target import ir
from irc.ops.algebra import AnyDType
from irc.runtime.array_memory import ALIGNMENT, ANY, ANY_STRIDE

FIELDS = 6
"""The code's address, the number of arrays, the begin and the end of the range, whether to release the lock, the bytes
of scratch memory, which the loop function gets as one more array."""

_CLASS, _DATA, _RANK, SIZES, STRIDES, _DTYPE, _FLAGS = 8, 16, 24, 32, 40, 56, 64
"""Offsets in an array object."""

_TYPE = 24
"""The offset of 8 bytes in an element type: its kind, letter and byte order, a byte without meaning, its number."""

_TYPE_MASK = 0xFFFFFFFF_00FFFFFF
_C_CONTIGUOUS = 1
METH_FASTCALL = 0x80


class Expected(NamedTuple):
    """What a call is made for.

    Attributes:
        dtype: the element type.
        shape: the shape, in which sizes may be `ANY`.
        strides: the strides, of which some may be `ANY_STRIDE`; None: those of an array in C order.
    """

    dtype: AnyDType
    shape: Sequence[int]
    strides: Sequence[int] | None = None

    @property
    def record(self) -> list[int]:
        """The numbers that a call compares: the type, the axes, whether strides follow, sizes, strides.

        Sizes and strides that are `ANY_STRIDE` are not compared.
        """
        word = ctypes.c_uint64.from_address(id(self.dtype) + _TYPE).value & _TYPE_MASK
        signed = ctypes.c_int64(word).value
        sizes = [ANY_STRIDE if size == ANY else size for size in self.shape]
        return [signed, len(self.shape), self.strides is not None, *sizes, *(self.strides or ())]


_UNCHECKED = [0, -1, 0]
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
    expected = [n for each in arrays for n in (_UNCHECKED if each is None else each.record)]
    record = np.array([address, len(arrays), 0, end, releases, scratch, *expected, *layout], np.int64)
    return builtin_of("irc.call", _emit, METH_FASTCALL, record)


def builtin_of(name: str, emit: Make, flags: int, record: Array) -> Callable[..., bool]:
    """A builtin function whose ``self`` is ``record``, by the function of the library that ``emit`` emits."""
    return _new(ctypes.addressof(_definition(name, emit, flags)), record, None)


_new: Any = ctypes.pythonapi.PyCFunction_NewEx
_new.restype = ctypes.py_object
_new.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)


@cache
def _definition(name: str, emit: Make, flags: int) -> _Definition:
    return _Definition(b"call", process_jit().library(name, emit), flags, None)


class Builtin:
    """Emits a builtin function of Python: what it reads of objects, what it calls, and when it refuses.

    Args:
        name: of the function.
        operands: how it is called (of the METH_ flags, the types of what comes after ``self``).

    Attributes:
        builder: where the function is emitted.
        own: ``self``.
        record: the numbers of the array that ``self`` is.
        given: the other operands.
        needs: functions of the library that are called, and what emits them.
    """

    def __init__(self, name: str, operands: Sequence[Any]) -> None:
        made, self.builder = function(name, [POINTER, *operands], POINTER)
        self._module = made.module
        self.needs: dict[str, Make] = {}
        self.own, *self.given = made.args
        self.record = self.read(self.own, _DATA, POINTER)
        self._array_type = self.read(self.own, _CLASS, POINTER)

    def read(self, pointer: Any, place: Any, kind: Any = INT) -> Any:
        """The element at an offset in bytes from a pointer."""
        place = number(place) if isinstance(place, int) else place
        return self.builder.load(offset(self.builder, pointer, place), typ=kind)

    def call(self, name: str, result: Any, *operands: Any) -> Any:
        """Call a function of Python or C."""
        kind = ir.FunctionType(result, [x.type for x in operands])
        return self.builder.call(self._module.globals.get(name) or ir.Function(self._module, kind, name), operands)

    def is_set(self, x: Any) -> Any:
        return self.builder.icmp_unsigned("!=", x, ir.Constant(x.type, None))

    def refuse_unless(self, condition: Any) -> None:
        """Return False, unless a condition holds."""
        with self.builder.if_then(self.builder.not_(condition), likely=False):
            self.builder.ret(self.call("PyBool_FromLong", POINTER, number(0)))

    def finish(self, result: Any = None) -> tuple[str, Mapping[str, Any]]:
        """Return ``result``, or True; the module's text."""
        self.builder.ret(self.call("PyBool_FromLong", POINTER, number(1)) if result is None else result)
        return str(self._module), self.needs

    def check(self, array: Any, at: Any, open_size: Any = None) -> Any:
        """Refuse ``array`` unless it is as the numbers say to which ``at`` points; where its elements begin.

        ``at`` then points behind these numbers. Sizes that are not compared raise the number at ``open_size``.
        """
        builder, narrow = self.builder, ir.IntType(32)
        expected = builder.load(at)
        self.refuse_unless(builder.icmp_unsigned("==", self.read(array, _CLASS, POINTER), self._array_type))
        rank, is_strided = self.read(expected, 8), self.is_set(self.read(expected, 16))
        wanted = offset(builder, expected, number(24))
        builder.store(wanted, at)
        with builder.if_then(builder.icmp_signed(">=", rank, number(0))):
            word = self.read(self.read(array, _DTYPE, POINTER), _TYPE)
            word = builder.and_(word, number(ctypes.c_int64(_TYPE_MASK).value))
            is_of_type = builder.icmp_unsigned("==", word, self.read(expected, 0))
            own_rank = builder.zext(self.read(array, _RANK, narrow), INT)
            self.refuse_unless(builder.and_(is_of_type, builder.icmp_unsigned("==", own_rank, rank)))
            length = builder.shl(rank, number(3))
            flags = builder.and_(self.read(array, _FLAGS, narrow), ir.Constant(narrow, _C_CONTIGUOUS))
            self.refuse_unless(builder.or_(self.is_set(flags), is_strided))
            self._compare(self.numbers(array, SIZES), wanted, rank, open_size)
            wanted = offset(builder, wanted, length)
            builder.store(wanted, at)
            with builder.if_then(is_strided):
                self._compare(self.numbers(array, STRIDES), wanted, rank)
                builder.store(offset(builder, wanted, length), at)
        return self.elements(array)

    def elements(self, array: Any) -> Any:
        """Where the elements of an array begin."""
        return self.read(array, _DATA, POINTER)

    def numbers(self, array: Any, field: Any) -> Any:
        """Where the sizes of an array begin, or the strides (`SIZES`, `STRIDES`)."""
        return self.read(array, field, POINTER)

    def _compare(self, numbers: Any, wanted: Any, rank: Any, open_size: Any = None) -> None:
        """Refuse unless as many numbers are as they are wanted."""
        builder = self.builder
        with loop(builder, number(0), rank) as i:
            place = builder.shl(i, number(3))
            found, expected = self.read(numbers, place), self.read(wanted, place)
            is_open = builder.icmp_signed("==", expected, number(ANY_STRIDE))
            self.refuse_unless(builder.or_(is_open, builder.icmp_signed("==", found, expected)))
            if open_size is not None:
                largest = builder.load(open_size)
                is_larger = builder.and_(is_open, builder.icmp_signed(">", found, largest))
                builder.store(builder.select(is_larger, found, largest), open_size)

    @contextmanager
    def scratch(self, size: Any) -> Generator[Any]:
        """A context with ``size`` bytes of cache-aligned memory of its own; none for 0."""
        builder = self.builder
        at = builder.alloca(POINTER)
        builder.store(ir.Constant(POINTER, None), at)
        with builder.if_then(self.is_set(size)):
            memory = self.call("PyMem_RawMalloc", POINTER, builder.add(size, number(ALIGNMENT)))
            with builder.if_then(builder.not_(self.is_set(memory)), likely=False):
                builder.ret(self.call("PyErr_NoMemory", POINTER))
            builder.store(memory, at)
        first = builder.and_(builder.ptrtoint(builder.load(at), INT), number(-ALIGNMENT))
        yield builder.inttoptr(builder.add(first, number(ALIGNMENT)), POINTER)
        self.call("PyMem_RawFree", VOID, builder.load(at))

    @contextmanager
    def released(self, releases: Any) -> Generator[None]:
        """A context that releases the GIL, if ``releases`` is set; the code returns if that has raised."""
        builder = self.builder
        thread = builder.alloca(POINTER)
        with builder.if_then(self.is_set(releases)):
            builder.store(self.call("PyEval_SaveThread", POINTER), thread)
        yield
        with builder.if_then(self.is_set(releases)):
            self.call("PyEval_RestoreThread", VOID, builder.load(thread))

    def call_python(self, function: Any, operand: Any) -> Any:
        """Call a function of Python, with the GIL held or not; whether it has returned. Its exception stays."""
        state = self.call("PyGILState_Ensure", ir.IntType(32))
        made = self.call("PyObject_CallOneArg", POINTER, function, operand)
        self.call("Py_DecRef", VOID, made)
        self.call("PyGILState_Release", VOID, state)
        return self.is_set(made)

    def raise_if_any(self) -> None:
        """Return what tells Python of an exception, if there is one."""
        with self.builder.if_then(self.is_set(self.call("PyErr_Occurred", POINTER)), likely=False):
            self.builder.ret(ir.Constant(POINTER, None))


def loop_function_at(builder: Any, address: Any) -> Any:
    """The loop function at an address."""
    return builder.inttoptr(address, ir.FunctionType(VOID, [POINTER, POINTER, INT, INT]).as_pointer())


def _emit() -> tuple[str, Mapping[str, Any]]:
    """The builtin: ``PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t nargs)``."""
    builtin = Builtin("irc.call", [POINTER, INT])
    builder, (arguments, given) = builtin.builder, builtin.given
    address, count, first, last, releases, scratch = (builtin.read(builtin.record, 8 * i) for i in range(FIELDS))
    is_whole = builder.icmp_unsigned("==", given, count)
    has_range = builder.icmp_unsigned("==", given, builder.add(count, number(2)))
    builtin.refuse_unless(builder.or_(is_whole, has_range))
    pointers = builder.alloca(POINTER, builder.add(count, number(1)))
    at, begin, end = (builder.alloca(kind) for kind in (POINTER, INT, INT))
    builder.store(offset(builder, builtin.record, number(8 * FIELDS)), at)  # what is expected of the next array
    with loop(builder, number(0), count) as i:
        place = builder.mul(i, number(8))
        elements = builtin.check(builtin.read(arguments, place, POINTER), at)
        builder.store(elements, offset(builder, pointers, place))
    with builder.if_then(builtin.is_set(address)):
        builder.store(first, begin)
        builder.store(last, end)
        behind = builder.mul(count, number(8))
        with builder.if_then(builder.not_(is_whole)):
            for i, number_at in enumerate((begin, end)):
                argument = builtin.read(offset(builder, arguments, behind), 8 * i, POINTER)
                builder.store(builtin.call("PyLong_AsLongLong", INT, argument), number_at)
        with builtin.scratch(scratch) as memory:
            builder.store(memory, offset(builder, pointers, behind))
            with builtin.released(releases):
                operands = pointers, builder.load(at), builder.load(begin), builder.load(end)
                builder.call(loop_function_at(builder, address), operands)
        builtin.raise_if_any()
    return builtin.finish()
