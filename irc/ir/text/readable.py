"""Which of irc's types PyTorch's parser of IR text can read."""

from __future__ import annotations

from irc.ir.types import TENSOR, TensorType, Type, rebuilt


def readable(t: Type) -> Type:
    """``t`` without what TorchScript's text cannot express: a tensor's rank without its element type, or the reverse.

    (There, ``Float`` must have dimensions in brackets, and ``Tensor`` cannot.)
    """
    return rebuilt(t, lambda part: TENSOR if isinstance(part, TensorType) and _is_half_known(part) else part)


def _is_half_known(tensor: TensorType) -> bool:
    return (tensor.dtype is None) != (tensor.shape is None)
