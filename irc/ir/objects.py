"""Objects that a graph is given with its weights: TorchScript's ``self``, a tree of named attributes.

A module knows them by the graph input that they are (``Module.objects``). They
say what the attributes are before the first run; running changes copies.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from irc.ir.tensor import Array, Tensor
from irc.ir.types import ClassType, DType


class Object:
    """An object of a class.

    Attributes:
        type: its class.
        attributes: name -> `Object`, ``Tensor`` or `Strided` (both named: equal names are one memory), a Python
            number, string or None, or a list, tuple or dict of these.
    """

    __slots__ = ("attributes", "type")

    def __init__(self, type: ClassType, attributes: dict[str, Any] | None = None) -> None:
        self.type = type
        self.attributes: dict[str, Any] = {} if attributes is None else attributes

    def __repr__(self) -> str:
        return f"<object {self.type}: {', '.join(self.attributes)}>"


class Strided(NamedTuple):
    """A tensor that shows elements of a storage which other attributes show too, or not all of one.

    Attributes:
        storage: all elements, one-dimensional.
        shape: its sizes.
        strides: for each dimension, how many elements of the storage lie between neighbours.
        offset: where in the storage it begins.
    """

    storage: Tensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.storage.dtype

    def of(self, storage: Array) -> Array:
        """The same elements of another array of the storage's shape: a view."""
        steps = tuple(s * storage.itemsize for s in self.strides)
        writable = bool(storage.flags.writeable)
        return np.lib.stride_tricks.as_strided(storage[self.offset :], self.shape, steps, writeable=writable)


def storage_of(tensor: Tensor | Strided) -> Tensor:
    """The tensor whose name stands for the memory."""
    return tensor.storage if isinstance(tensor, Strided) else tensor
