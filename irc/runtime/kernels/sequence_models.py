"""RotaryEmbedding, what it is made of, CausalConvWithState: the parts of language models that are no attention.

Their function bodies depend on ranks and sizes, which importers do not know, so irc has kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.numerics import negative
from irc.runtime.kernels.registry import computes, one_of
from irc.runtime.kernels.support import Array, is_half

if TYPE_CHECKING:
    pass


@computes("onnx::RotaryEmbedding", since=23)
def _rotary_embedding(
    x: Array,
    cos: Array,
    sin: Array,
    positions: Array | None = None,
    *,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    interleaved: bool = False,
) -> Array:
    by_head = _by_head(x, num_heads)  # (batch, sequence, num_heads, size)
    rotated = rotary_embedding_dim or by_head.shape[-1]
    if rotated % 2 or not 0 < rotated <= by_head.shape[-1]:
        raise Error("IRC421", f"{rotated} elements of each head's {by_head.shape[-1]} cannot be rotated in pairs")
    cos, sin = (_angles(table, positions, rotated // 2, by_head.shape) for table in (cos, sin))
    out = np.empty(x.shape, x.dtype)
    result = _by_head(out, num_heads)
    result[..., rotated:] = by_head[..., rotated:]
    halves = (slice(0, rotated, 2), slice(1, rotated, 2))
    if not interleaved:
        halves = (slice(0, rotated // 2), slice(rotated // 2, rotated))
    a, b = (by_head[..., half] for half in halves)
    result[..., halves[0]] = cos * a - sin * b
    result[..., halves[1]] = sin * a + cos * b
    return out


def _by_head(x: Array, heads: int) -> Array:
    """``x``, of shape (batch, heads, sequence, size) or (batch, sequence, heads * size), with heads last but one."""
    if x.ndim == 4:
        return x.swapaxes(1, 2)
    if x.ndim != 3:
        raise Error("IRC421", f"the input must have 3 or 4 dimensions; its shape is {list(x.shape)}")
    if heads < 1 or x.shape[2] % heads:
        raise Error("IRC421", f"{heads} heads (num_heads) do not divide an input of shape {list(x.shape)}")
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads)


def _angles(table: Array, positions: Array | None, width: int, shape: tuple[int, ...]) -> Array:
    """Cosines or sines of each position, of shape (batch, sequence, 1, width)."""
    if positions is not None:
        if table.ndim != 2 or (positions.size and not 0 <= int(positions.min()) <= int(positions.max()) < len(table)):
            raise Error("IRC423", f"a position is outside of a table of shape {list(table.shape)}")
        table = table[positions]
    if table.ndim != 3 or table.shape[2] != width or any(n not in (1, m) for n, m in zip(table.shape[:2], shape)):
        raise Error("IRC421", f"cosines of shape {list(table.shape)}: {[*shape[:2], width]} is needed")
    return table[:, :, None, :]


_EVEN, _ODD = slice(None, None, 2), slice(1, None, 2)


@computes("irc::rotate_half")
def _rotate_half(x: Array, out: Array | None = None, *, interleaved: bool = False) -> Array:
    if not x.ndim or x.shape[-1] % 2:
        raise Error("IRC421", f"the last axis of the shape {list(x.shape)} has no halves")
    half = x.shape[-1] // 2
    result = np.empty(x.shape, x.dtype) if out is None else out
    first, second = (_EVEN, _ODD) if interleaved else (slice(half), slice(half, None))
    negative(x[..., second], result[..., first])
    result[..., second] = x[..., first]
    return result


def _silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


_ACTIVATIONS: dict[str, Any] = {"none": None, "silu": _silu, "swish": _silu}


@computes("onnx::CausalConvWithState", since=27, activation=one_of("activation", "none", _ACTIVATIONS))
def _causal_conv(
    x: Array, weight: Array, bias: Array | None = None, past: Array | None = None, *, activation: str, outputs: int
) -> Any:
    batch, channels, length = _shape(x, weight, bias)
    before = weight.shape[2] - 1
    if past is None:
        past = np.zeros((batch, channels, before), x.dtype)
    elif past.shape != (batch, channels, before):
        raise Error("IRC421", f"past_state of shape {list(past.shape)}: {[batch, channels, before]} is needed")
    line = np.concatenate((past, x), axis=2)
    exact = line.astype(np.float32) if is_half(x.dtype) else line
    total = np.zeros(x.shape, exact.dtype)
    for offset in range(before + 1):
        total += exact[:, :, offset : offset + length] * weight[:, :, offset].astype(exact.dtype).reshape(1, -1, 1)
    if bias is not None:
        total += bias.astype(exact.dtype)[:, None]
    activate = _ACTIVATIONS[activation]
    result = (activate(total) if activate else total).astype(x.dtype, copy=False)
    return (result, line[:, :, line.shape[2] - before :].copy()) if outputs > 1 else result


def _shape(x: Array, weight: Array, bias: Array | None) -> tuple[int, int, int]:
    if x.ndim != 3 or weight.ndim != 3 or weight.shape[:2] != (x.shape[1], 1) or not weight.shape[2]:
        raise Error("IRC421", f"a weight of shape {list(weight.shape)} is not for an input of shape {list(x.shape)}")
    if bias is not None and bias.shape != x.shape[1:2]:
        raise Error("IRC421", f"a bias of shape {list(bias.shape)} is not for an input of shape {list(x.shape)}")
    return x.shape
