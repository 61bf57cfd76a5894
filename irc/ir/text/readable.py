"""What PyTorch's parser of IR text can read of irc's types."""

from __future__ import annotations

from irc.ir.types import TENSOR, TensorType, Type, rebuilt


def readable(t: Type) -> Type:
    """``t``, less what TorchScript's text has no words for: a tensor's rank without its element type, or the reverse.

    (``Float`` must have dimensions in brackets there, and ``Tensor`` cannot.)
    """
    return rebuilt(t, lambda part: TENSOR if isinstance(part, TensorType) and _is_half_known(part) else part)


def _is_half_known(tensor: TensorType) -> bool:
    return (tensor.dtype is None) != (tensor.shape is None)
