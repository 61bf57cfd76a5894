"""Objects that come with a graph's weights: TorchScript's ``self``, a tree of named attributes.

A module lists them by the graph inputs that they are (``Module.objects``). They
have the attributes' values before the first run; running changes copies.
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
            number, string or None, or a list, tuple or dict of these. Tensors of one name are one tensor, whose shape
            and strides change for all that hold it; so is one `Strided`, while another of the same storage is a tensor
            of its own. In a run there are arrays instead of tensors.
    """

    __slots__ = ("attributes", "type")

    def __init__(self, type: ClassType, attributes: dict[str, Any] | None = None) -> None:
        self.type = type
        self.attributes: dict[str, Any] = {} if attributes is None else attributes

    def __repr__(self) -> str:
        return f"<{self.type}>"


class Strided(NamedTuple):
    """A tensor that shows part of a storage, or a storage that other attributes show too.

    Attributes:
        storage: all elements, one-dimensional.
        shape: its sizes.
        strides: for each dimension, the distance between neighbours in elements of the storage.
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
        """A new view of ``storage``, an array of the storage's shape, that shows the same elements."""
        steps = tuple(s * storage.itemsize for s in self.strides)
        return np.ndarray(self.shape, storage.dtype, storage, self.offset * storage.itemsize, steps)


def storage_of(tensor: Tensor | Strided) -> Tensor:
    """The tensor whose name identifies the memory."""
    return tensor.storage if isinstance(tensor, Strided) else tensor
