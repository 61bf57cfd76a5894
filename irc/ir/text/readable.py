"""What PyTorch's parser of IR text can read of irc's types."""

from __future__ import annotations

from irc.ir.types import TENSOR, DictType, FutureType, ListType, OptionalType, TensorType, TupleType, Type, UnionType


def readable(t: Type) -> Type:
    """``t``, less what TorchScript's text has no words for: a tensor's rank without its element type, or the reverse.

    (``Float`` must have dimensions in brackets there, and ``Tensor`` cannot.)
    """
    if isinstance(t, TensorType):
        return t if (t.dtype is None) == (t.shape is None) else TENSOR
    if isinstance(t, ListType | OptionalType | FutureType):
        return t.__class__(readable(t.elem))
    if isinstance(t, DictType):
        return DictType(readable(t.key), readable(t.value))
    if isinstance(t, TupleType):
        return TupleType(tuple(map(readable, t.elems)))
    if isinstance(t, UnionType):
        return UnionType(tuple(map(readable, t.members)))
    return t
