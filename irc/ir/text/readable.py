"""What PyTorch's parser of IR text can read of irc's types."""

from __future__ import annotations

from irc.ir.types import TENSOR, Type, map_tensors


def readable(t: Type) -> Type:
    """``t``, less what TorchScript's text has no words for: a tensor's rank without its element type, or the reverse.

    (``Float`` must have dimensions in brackets there, and ``Tensor`` cannot.)
    """
    return map_tensors(t, lambda tensor: tensor if (tensor.dtype is None) == (tensor.shape is None) else TENSOR)
