"""Constant tensors: the values of weights and of tensor attributes.

A tensor is *dense* (an array, possibly loaded on first use), a *splat* (one
scalar and a shape: VGG's all-equal weights would fill 548 MB otherwise) or
*absent* (IR text that was read without its weights).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Container, Hashable, Iterable
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.ma import MaskedArray

from irc.errors import Error
from irc.ir.types import DType, TensorType

# Arrays of strings: those of Python's strings, and arrays that can be converted to such.


def python_strings(array: Array) -> Array:
    """``array`` with Python strings; ValueError with the reason if elements are no valid UTF-8 strings."""
    kind = array.dtype.kind
    if kind == "S":
        try:
            decoded = [text.decode() for text in array.reshape(-1).tolist()]
        except UnicodeDecodeError as error:
            raise ValueError(f"expected strings; these bytes are none: {error}") from None
        return np.array(decoded, object).reshape(array.shape)
    if not is_text(array):
        raise ValueError("expected strings; these have elements that are not characters")
    if kind in "UT":
        return array.astype(object)
    if kind != "O":
        raise ValueError(f"expected strings, got {array.dtype.name}{list(array.shape)}")
    for number, element in enumerate(array.reshape(-1)):
        if not isinstance(element, str):
            place = [int(i) for i in np.unravel_index(number, array.shape)]
            raise ValueError(f"expected strings; element {place} is {element!r:.40}")
    return array


def is_text(array: Array) -> bool:
    """Whether an array of fixed-width strings (``<U3``) holds characters: NumPy lets it hold any 32 bits."""
    if array.dtype.kind != "U":
        return True
    code_points = np.frombuffer(array.tobytes(), np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    return not (code_points > sys.maxunicode).any()


# -- tensor --------------------------------------------------------------------


Array = np.ndarray[Any, Any]

_INLINE_ELEMENTS = 16
"""Constants with more elements, unless all are equal, are weights: named, and printed by name."""

_ALIGNMENT = 64
"""Bytes; a cache line, and the widest vector registers."""

_SAMPLES = 64
"""About how many elements of a tensor are sampled, to tell unequal tensors apart before whole ones are compared."""


class Tensor:
    """An immutable constant tensor.

    Attributes:
        dtype: element type.
        shape: sizes of all dimensions.
        name: key in the weight table, or "" for a tensor that prints in line.
    """

    __slots__ = ("_array", "_load", "_sample", "_scalar", "_transient", "dtype", "name", "shape")

    def __init__(
        self,
        dtype: DType,
        shape: tuple[int, ...],
        *,
        name: str = "",
        array: Array | None = None,
        scalar: Array | None = None,
        load: Callable[[], Array] | None = None,
        transient: bool = False,
        sample: Hashable = None,
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.name = name
        # Read-only, because the runtime hands constants out as they are and tells by this flag what it may write.
        self._array = None if array is None else _read_only(array)
        self._scalar = None if scalar is None else _read_only(scalar)
        self._load = load
        self._transient = transient
        self._sample = sample

    @staticmethod
    def of(value: Any, name: str = "", dtype: DType | None = None) -> Tensor:
        """A tensor with the contents of ``value`` (array or nested numbers); all-equal arrays become splats.

        The array is not copied unless it is converted; the caller must not write to it afterwards.

        Raises:
            Error: IRC143 if there are no tensors of such elements, or some are masked.
        """
        if isinstance(value, MaskedArray):  # as an array, it would show what is masked
            raise Error("IRC143", "masked arrays are not supported: fill them first", name)
        array: Array = np.asarray(value, None if dtype is None else dtype.numpy)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        try:
            found = dtype or DType.from_numpy(array.dtype)
            if found is DType.STRING:
                array = python_strings(array)
        except KeyError:
            raise Error("IRC143", f"irc has no element type for {array.dtype}", name) from None
        except ValueError as error:
            raise Error("IRC143", str(error), name) from None
        if array.size > 1 and found is not DType.STRING and _all_equal(array):
            return Tensor.splat(found, array.shape, array[(0,) * array.ndim], name)
        return Tensor(found, array.shape, name=name, array=array)

    @staticmethod
    def splat(dtype: DType, shape: tuple[int, ...], value: Any, name: str = "") -> Tensor:
        """A tensor of ``shape`` whose elements all equal ``value``."""
        return Tensor(dtype, shape, name=name, scalar=np.array(value, dtype.numpy))

    @staticmethod
    def lazy(
        dtype: DType,
        shape: tuple[int, ...],
        load: Callable[[], Array],
        name: str = "",
        *,
        transient: bool = False,
        sample: Hashable = None,
    ) -> Tensor:
        """A tensor whose array ``load`` returns, each time it is called.

        If that array is ``transient`` (a view of something that may change), a copy of it is kept. ``sample`` is
        that of the contents, if it is known already.
        """
        return Tensor(dtype, shape, name=name, load=load, transient=transient, sample=sample)

    @property
    def type(self) -> TensorType:
        """The exact type of this tensor."""
        return TensorType(self.dtype, self.shape)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes the contents take as a NumPy array (splats: if they were written out)."""
        return self.numel * self.dtype.numpy.itemsize

    @property
    def is_splat(self) -> bool:
        """Whether only one scalar is stored."""
        return self._scalar is not None

    @property
    def is_absent(self) -> bool:
        """Whether the contents are not known (IR text read without its weights)."""
        return self._array is None and self._scalar is None and self._load is None

    @property
    def fits(self) -> bool:
        """Whether the contents have the tensor's type and shape; contents not in memory are trusted."""
        array, scalar, wanted = self._array, self._scalar, self.dtype.numpy
        return (array is None or (array.shape == self.shape and array.dtype == wanted)) and (
            scalar is None or (scalar.shape == () and scalar.dtype == wanted)
        )

    @property
    def can_wait(self) -> bool:
        """Whether the contents are not in memory, and can be read later just as well as now."""
        return self._load is not None and not self._transient

    @property
    def scalar(self) -> Array:
        """The element of a splat, or of a one-element tensor, as a 0-d array."""
        if self._scalar is not None:
            return self._scalar
        if self.numel != 1:
            raise ValueError(f"tensor of shape {self.shape} is not a scalar")
        return self.numpy().reshape(())

    def numpy(self) -> Array:
        """The contents, read-only; a splat is a broadcast view of its scalar."""
        if self._scalar is not None:
            return np.broadcast_to(self._scalar, self.shape)
        if self._array is None:
            load = self._load
            if load is not None:
                found = load()
                self._array = _read_only(found.copy() if self._transient else found)
                self._load = None
            elif self._array is None:  # or another thread has just loaded it
                raise Error(
                    "IRC306",
                    "IR text does not hold the contents of this weight: parse_graph(text, weights=...) takes them, "
                    "and .irc files keep them",
                    f"weight {self.name!r}",
                )
        return self._array

    @property
    def copies_when_read(self) -> bool:
        """Whether the contents are not in memory, and what is then read must be copied."""
        return self._load is not None and self._transient

    def read_into(self, place: Array) -> None:
        """Read the contents, which are copied anyhow, into ``place``; nobody may write there any more."""
        place[...] = self.peek()
        self._array, self._load = _read_only(place), None

    def written_out(self) -> Array:
        """The contents, read-only, one memory place an element, also for a splat; always the same array."""
        if self._scalar is None:
            return self.numpy()
        if self._array is None:
            self._array = _read_only(np.full(self.shape, self._scalar))
        return self._array

    def peek(self) -> Array:
        """The contents as by `numpy`, but without keeping them loaded: for a single look."""
        load = self._load
        return self.numpy() if load is None else load()

    def sample(self) -> Hashable:
        """The bits of a few elements at fixed places for this shape: if they differ, the contents do."""
        if self._sample is None:
            self._sample = sample(self.peek())
        return self._sample

    def renamed(self, name: str) -> Tensor:
        """The same contents under another name (not copied)."""
        return Tensor(
            self.dtype,
            self.shape,
            name=name,
            array=self._array,
            scalar=self._scalar,
            load=self._load,
            transient=self._transient,
            sample=self._sample,
        )

    def key(self) -> tuple[Any, ...]:
        """A hashable key; tensors with equal keys have equal contents, bit for bit."""
        if self._scalar is not None:
            return (self.dtype, self.shape, "splat", _bytes(self._scalar))
        if self.name:
            return (self.dtype, self.shape, "weight", self.name)
        return (self.dtype, self.shape, "dense", _bytes(self.numpy()))

    def same_contents(self, other: Tensor) -> bool:
        """Whether both have equal type and contents, bit for bit."""
        if self.dtype is not other.dtype or self.shape != other.shape or self.is_absent != other.is_absent:
            return False
        if self.is_absent or (self.is_splat and other.is_splat):
            return self.is_absent or _bytes(self.scalar) == _bytes(other.scalar)
        return _bytes(self.peek()) == _bytes(other.peek())

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} is not true or false itself: ask for its element, tensor.scalar.item()")

    def __repr__(self) -> str:
        kind = "splat" if self.is_splat else "absent" if self.is_absent else "dense"
        return f"<{kind} tensor {self.name!r} {self.type}>"


def load_together(tensors: Iterable[Tensor]) -> None:
    """Copy transient ``tensors`` that are not in memory yet to one piece of it.

    `Tensor.numpy` would copy them one by one. The system gives large pieces of memory in large pages: of small ones,
    the network's weights take ten times as many, and more time than copying.
    """
    waiting = [tensor for tensor in dict.fromkeys(tensors) if tensor.copies_when_read and tensor.nbytes]
    begins = [*accumulate((-(-tensor.nbytes // _ALIGNMENT) * _ALIGNMENT for tensor in waiting), initial=0)]
    try:
        memory = np.empty(begins[-1] + _ALIGNMENT, np.uint8)
    except MemoryError:
        return  # there may be smaller pieces
    start = -memory.ctypes.data % _ALIGNMENT
    for tensor, begin in zip(waiting, begins):
        # Of a view of bytes, not of an array: so each tensor's array is the owner of its memory.
        place: Array = np.frombuffer(memory[start + begin :][: tensor.nbytes].data, np.uint8)
        tensor.read_into(place.view(tensor.dtype.numpy).reshape(tensor.shape))


class WeightTable(dict[str, Tensor]):
    """Named tensors of a module: what ``@"name"`` in IR text refers to."""

    def hold(self, name: str, tensor: Tensor) -> Tensor:
        """``tensor`` as constants hold it: in the table as ``name`` if it is unnamed and too large to print."""
        in_line = tensor.name or tensor.is_splat or tensor.numel <= _INLINE_ELEMENTS
        return tensor if in_line else self.add(name, tensor)

    def add(self, name: str, tensor: Tensor) -> Tensor:
        """Enter ``tensor`` under ``name`` (``name.N`` if that is taken) and return it so named."""
        unique = free_name(name, self)
        named = self[unique] = tensor.renamed(unique)
        return named


def free_name(name: str, taken: Container[str]) -> str:
    """``name``, or the first ``name.N`` that is not ``taken``."""
    found, n = name, 0
    while found in taken:
        n += 1
        found = f"{name}.{n}"
    return found


def sample(array: Array) -> Hashable:
    """As `Tensor.sample`, of an array."""
    flat = array.reshape(-1)
    return _bytes(flat[:: max(1, flat.size // _SAMPLES)])


def _read_only(array: Array) -> Array:
    array = np.asarray(array)  # a subclass may compute in ways of its own
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def _bytes(array: Array) -> Hashable:
    return tuple(array.ravel().tolist()) if array.dtype.hasobject else array.tobytes()


def _all_equal(array: Array) -> bool:
    if array.dtype.hasobject:
        return False
    # Bit patterns are compared, so that 0.0 and -0.0 differ and a NaN equals itself.
    flat = np.ascontiguousarray(array).reshape(-1)
    raw = flat.view(np.uint8).reshape(flat.size, -1)
    return bool((raw[-1] == raw[0]).all() and (raw[raw.shape[0] // 2] == raw[0]).all() and (raw == raw[0]).all())
