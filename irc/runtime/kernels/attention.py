"""Scaled dot-product attention (Vaswani et al., 2017), by blocks of rows of its scores.

``softmax(q @ k^T * scale + bias) @ v`` of 32 heads and 4,096 positions has 2 GiB of scores. No array of them is ever
made: each block of at most `BLOCK_BYTES` is computed, turned into weights and multiplied with the values in scratch
memory that stays in the cache. Small attention is one block.

Heads that share keys and values are an axis of their own within a block, so that keys are neither repeated nor read
once a head. Small floats are computed in float32; their scores are rounded once, as those of a product of small floats
are. Whichever thread of the run is free takes the next block; how scores are cut does not depend on the threads.

The function bodies of RotaryEmbedding and CausalConvWithState depend on ranks and sizes, which importers do not know.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from irc.errors import Error
from irc.ir import Node
from irc.runtime.bounds import CURRENT, in_turn, pace
from irc.runtime.kernels.matmul import matrix_product
from irc.runtime.kernels.numerics import add_reduce, are_short, narrowed, negative, rounded, widened
from irc.runtime.kernels.registry import computes, one_of
from irc.runtime.kernels.softmax import exponentials, softmax
from irc.runtime.kernels.support import Array, check_size, common_shape, counting, is_half, scratch

Shape = tuple[int, ...]

BLOCK_BYTES = 1 << 20
"""Bytes of a block of scores, if it has more than `ROWS` rows of a head."""

ROWS = 64
"""The least rows of a head in a block, if the head has as many: a block reads all keys and values
of its heads. Measured on one thread, rows of 4 to 512 KiB: 32 take up to a fifth longer, 1 four times as long."""


_FEW_SCORES = 1 << 14
"""Of all heads: up to here, machine code that goes row by row is faster than the BLAS, and Python around it."""

_LEAST = 2.0**-12
"""Factors from here to 1 scale queries, not scores: by others, queries might overflow, or lose bits of small ones."""


class Form(NamedTuple):
    """What is done to scores.

    Attributes:
        scale: what they are multiplied with; None: ``1 / sqrt(E)``.
        softcap: they stay below it, ``softcap * tanh(scores / softcap)``; 0: no cap.
        causal: whether query ``i`` sees keys up to ``i`` only ("first"), or up to ``S - L + i`` ("last", which aligns
            the last query with the last key); "": it sees all keys.
        fill: the score of keys that the mask excludes.
        zero_rows: of which rows the result is zeros: "" none; "nan" those whose softmax is not a number; "masked" those
            of which bias and masks exclude every key; "lowest" those in which all scores are -inf.
        grouped: whether heads may share keys and values.
        dropout: gives what weights are multiplied with; None: nothing.
    """

    scale: float | None = None
    softcap: float = 0.0
    causal: str = ""
    fill: float = -math.inf
    zero_rows: str = ""
    grouped: bool = False
    dropout: Callable[[Array], Array] | None = None


_PLAIN = Form()


def form_of(node: Node) -> Form:
    """What the attributes of a node say."""
    given = node.attributes
    return Form(
        scale=None if given.get("scale") is None else float(given["scale"]),
        softcap=float(given.get("softcap", 0)),
        causal=given.get("causal", ""),
        fill=float(given.get("fill", -math.inf)),
        zero_rows=given.get("zero_rows", ""),
        grouped=bool(given.get("grouped", 0)),
    )


@computes("irc::attention", form=form_of)
def attend(
    query: Array,
    key: Array,
    value: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    sink: Array | None = None,
    out: Array | None = None,
    *,
    form: Form | None = None,
) -> Array:
    """The result of attention, (..., H, L, V), in ``out`` if given (which must share with no operand).

    Args:
        query: (..., H, L, E).
        key: (..., H, S, E); (..., K, S, E) if ``form.grouped``, K a divisor of H: H / K neighbours share one.
        value: (..., H, S, V), or K heads likewise.
        bias: numbers that are added to scores, (..., H, L, S); all of these broadcast, as in NumPy.
        mask: bools: which keys take part, likewise.
        sink: for each head, (H,), or for all, (1,), the score of a key that is not there, whose value is 0.
        out: where to write the result.
        form: what else is done to scores; None: nothing.

    Raises:
        Error: IRC421 if shapes do not fit together, IRC422 if the result is too large, IRC423 if element types do not.
    """
    form, dtype = form or _PLAIN, query.dtype
    if not dtype == key.dtype == value.dtype or dtype.kind not in "fV":
        raise Error("IRC423", "query, key and value must have one element type, of floats; convert them")
    if mask is not None and mask.dtype.kind != "b":
        raise Error("IRC423", f"a mask of {mask.dtype.name}; convert it to bools")
    given, group, heads = _operands(query, key, value, bias, mask, form)
    query, key, value, bias, mask, _ = given
    if sink is not None:
        sink = _of_heads(sink, query.shape[:-2], group, heads)
    if out is None:
        shape = (*heads, query.shape[-2], value.shape[-1])
        if CURRENT.scope.guard is not None or math.prod(shape) > _SURELY_SMALL:
            check_size(shape, dtype)
        out = np.empty(shape, dtype)
    if not key.shape[-2]:
        out.fill(0)
    elif out.size:
        if dtype.char not in "fd" and is_half(dtype):
            key, value = widened(key), widened(value)
        _compute(form, group, out, (query, key, value, bias, mask, sink))
    return out


_SURELY_SMALL = 1 << 20
"""Elements of a result that cannot be too large without limits."""


Operands = tuple[Array, Array, Array, Array | None, Array | None, Array | None]
"""Query, key, value, bias, mask and sink with one batch, and an axis for heads that share keys, of which there are G.

The query is (..., K, G, L, E), or (..., H, L, E) if each head has keys of its own; the key (..., K, S, E); the
value (..., K, S, V). Bias and mask broadcast to (..., K, G, L, S), or (..., H, L, S), the sink to one key.
"""


def _operands(
    query: Array, key: Array, value: Array, bias: Array | None, mask: Array | None, form: Form
) -> tuple[Operands, int, Shape]:
    """The operands with an axis for heads that share keys; how many share (1: none); result axes.

    But for the last two, as the caller knows them. Raises IRC421.
    """
    own, others, rows = query.shape, key.shape, query.shape[-2:-1]
    lead = own[:-2]
    if bias is mask is None and lead and (*lead, others[-2], own[-1]) == others and others[:-1] == value.shape[:-1]:
        return (query, key, value, None, None, None), 1, lead  # most decoders' steps: nothing broadcasts
    if min(len(own), len(others), value.ndim) < 2:
        raise Error("IRC421", f"query, key and value need 2 dimensions; the query has shape {list(own)}")
    if own[-1] != others[-1]:
        raise Error("IRC421", f"a query of shape {list(own)} and a key of shape {list(others)} have other widths")
    group = 1
    if len(own) > 2 < len(others) and lead[-1] != others[-3]:
        shared, is_same = others[-3], value.shape[-3:-2] == others[-3:-2]
        if form.grouped and not (is_same and shared and lead[-1] % shared == 0):
            raise Error("IRC421", f"heads of a query {list(own)} cannot share those of {list(others)}")
        if form.grouped or (is_same and shared == 1):
            lead, group = (*lead[:-1], shared), lead[-1] // shared
    if lead != others[:-2] or lead != value.shape[:-2]:
        lead = common_shape(lead, others[:-2], value.shape[:-2])
    heads = (*lead[:-1], lead[-1] * group) if lead else lead
    scores = (*heads, *rows, others[-2])
    for x in (bias, mask):
        if x is not None and not broadcasts_into(x.shape, scores):
            whole = common_shape(scores, x.shape)
            query = np.broadcast_to(query, (*whole[:-1], own[-1]))
            key = np.broadcast_to(key, (*others[:-2], whole[-1], own[-1]))
            return _operands(query, key, value, bias, mask, form)
    if others[-2] != value.shape[-2]:
        raise Error("IRC421", f"keys of shape {list(others)} are not as many as values of shape {list(value.shape)}")
    if own[:-2] != heads:
        query = np.broadcast_to(query, (*heads, *own[-2:]))
    if lead != others[:-2]:
        key = np.broadcast_to(key, (*lead, *others[-2:]))
    if lead != value.shape[:-2]:
        value = np.broadcast_to(value, (*lead, *value.shape[-2:]))
    if group != 1:
        query = query.reshape(*lead, group, *own[-2:])
        bias, mask = (None if x is None else _apart(x, group) for x in (bias, mask))
    return (query, key, value, bias, mask, None), group, heads


def _of_heads(sink: Array, lead: Shape, group: int, heads: Shape) -> Array:
    """``sink`` as (*lead, 1, 1), for queries of `_operands` with these leading axes. Raises IRC421."""
    if not heads or sink.shape not in (heads[-1:], (1,)):
        raise Error("IRC421", f"a sink of shape {list(sink.shape)} for heads {list(heads)}; give one number a head")
    wide = np.broadcast_to(widened(sink), heads[-1:])
    apart = wide if group == 1 else wide.reshape(lead[-2:])
    return np.broadcast_to(apart[..., None, None], (*lead, 1, 1))


def broadcasts_into(shape: Shape, space: Shape) -> bool:
    """Whether an array of ``shape`` broadcasts to one of the shape ``space``."""
    return len(shape) <= len(space) and all(n in (1, size) for n, size in zip(reversed(shape), reversed(space)))


def _apart(x: Array, group: int) -> Array:
    """``x``, which broadcasts to scores (..., H, L, S), as what broadcasts to (..., K, G, L, S)."""
    if x.ndim < 3:
        return x
    *lead, heads, rows, keys = x.shape
    apart = (1, 1) if heads == 1 else (heads // group, group)
    return x.reshape(*lead, *apart, rows, keys)


def _compute(form: Form, group: int, out: Array, given: Operands) -> None:
    """Compute all blocks into ``out``, from what `_operands` gives, with keys and values that are wide."""
    query, key, value, bias, mask, sink = given
    *lead, count, _ = query.shape
    keys, row = key.shape[-2], key.shape[-2] * key.itemsize
    last = keys - count if form.causal == "last" else 0  # the last key that the first query sees
    if group != 1:
        out = out.reshape(*lead, *out.shape[-2:])
    if math.prod(lead) * count * row <= BLOCK_BYTES:
        _block(form, group, last, out, given)
        return
    scores = (*lead, count, keys)
    bias, mask = (None if x is None else np.broadcast_to(x, scores) for x in (bias, mask))
    blocks = [*_blocks(tuple(lead if group == 1 else lead[:-1]), group, count, row)]

    def piece(number: int) -> None:
        heads, start, stop = blocks[number]
        part = (*heads, ..., slice(start, stop), slice(None))
        end = min(keys, max(1, stop + last)) if form.causal else keys
        seen = (*heads, ..., slice(end), slice(None))
        visible = (*part[:-1], slice(end))
        more = [None if x is None else x[at] for x, at in ((bias, visible), (mask, visible), (sink, heads))]
        _block(form, group, start + last, out[part], (query[part], key[seen], value[seen], more[0], more[1], more[2]))
        pace()

    share = CURRENT.scope.share if form.dropout is None else in_turn  # what is drawn depends on the order
    share(len(blocks), piece)


def _block(form: Form, group: int, last: int, out: Array, given: Operands) -> None:
    """Compute ``out``, some rows of some heads, of which the first sees keys up to number ``last``."""
    query, key, value, bias, mask, sink = given
    shape, wide, scope = query.shape, key.dtype, CURRENT.scope
    rows, width = shape[:-1], shape[-1]
    is_half = query.dtype is not wide and query.dtype != wide
    number = 1 / math.sqrt(width or 1) if form.scale is None else form.scale
    is_plain = sink is None and has_few_rows(form, rows, key.shape[-2]) and not is_half and scope.guard is None
    if is_plain and scope.loops.attend(query, key, value, number, out, bias, mask, form.fill):
        return
    scale = wide.type(number)
    is_moved = _LEAST <= abs(scale) <= 1  # to the queries, which are fewer
    ready = np.multiply(widened(query) if is_half else query, scale if is_moved else wide.type(1), order="C")
    if group != 1:
        rows = (*shape[:-3], group * shape[-2])
        ready = ready.reshape(*rows, width)
    flat = scratch("attention", (*rows, key.shape[-2]), wide)
    is_step = rows[-1] == 1 and scope.guard is None  # a decoder's: nothing is left to choose
    product = np.matmul if is_step else matrix_product
    product(ready, key.swapaxes(-1, -2), flat)
    if not is_moved:
        np.multiply(flat, scale, flat)
    if form.softcap:
        cap = wide.type(form.softcap)
        np.divide(flat, cap, flat)
        np.tanh(flat, flat)
        np.multiply(flat, cap, flat)
    scores = flat if group == 1 else flat.reshape(*shape[:-1], flat.shape[-1])
    _exclude(form, last, scores, bias, mask)
    if is_half:
        np.copyto(flat, rounded(flat, query.dtype))
    along = flat.ndim - 1
    none = np.isneginf(_highest(flat)) if form.zero_rows == "lowest" else None  # rows that become zeros
    sums: Array | None = None  # what weights are still to be divided by
    if sink is not None:
        sums = _exponentials_with(sink, scores).reshape(*rows, 1)
    elif are_short(flat, along):
        softmax(flat, along, flat)
    else:
        _, sums = exponentials(flat, along, flat)
    if form.zero_rows:
        if none is None:
            none = np.isnan(flat[..., :1] if sums is None else sums)
        if form.zero_rows == "masked" and none.any():
            excluded = np.zeros(scores.shape, wide)  # scores if products were 0
            _exclude(form, last, excluded, bias, mask)
            none &= np.isneginf(_highest(excluded)).reshape(none.shape)
        if none.any():
            np.copyto(flat, 0, where=none)
            if sums is not None:
                np.copyto(sums, 1, where=none)
    if form.dropout is not None:
        np.multiply(flat, form.dropout(flat), flat)
    target: Array | None = None if is_half else out
    if group != 1 and target is not None:
        target = out.reshape(*rows, out.shape[-1]) if out.flags.c_contiguous else None
    made = product(flat, value, target)
    if sums is not None:
        np.divide(made, sums, made)
    if target is None:
        narrowed(made.reshape(out.shape), query.dtype, out)


def has_few_rows(form: Form, rows: Shape, keys: int) -> bool:
    """Whether each row is but the softmax of all scores, times the scale, and rows (..., L) are few."""
    if form.softcap or form.zero_rows or form.dropout:
        return False
    if rows[-1] == 1:
        return form.causal != "first"
    return not form.causal and math.prod(rows) * keys <= _FEW_SCORES


def _exclude(form: Form, last: int, scores: Array, bias: Array | None, mask: Array | None) -> None:
    """Add ``bias`` to ``scores``; lower those of keys excluded by ``mask`` or unseen by rows."""
    if bias is not None:
        np.add(scores, bias, scores, casting="same_kind")
    if mask is not None:
        np.copyto(scores, form.fill, where=np.logical_not(mask))
    if form.causal:
        rows, keys = scores.shape[-2:]
        first = max(0, last + 1)
        if first < keys:
            later = counting(keys)[first:] > (counting(rows) + last)[:, None]
            np.copyto(scores[..., first:], -np.inf, where=later)


def _exponentials_with(sink: Array, scores: Array) -> Array:
    """Turn ``scores`` in place into softmax numerators; return the denominators, sinks included."""
    highest = np.maximum(_highest(scores), sink)
    np.subtract(scores, highest, scores)
    np.exp(scores, scores)
    return add_reduce(scores, (scores.ndim - 1,), True) + np.exp(sink - highest)


def _highest(scores: Array) -> Array:
    """The largest score of each row."""
    return np.maximum.reduce(scores, -1, keepdims=True, initial=-np.inf)


def _blocks(lead: Shape, group: int, rows: int, row: int) -> Iterator[tuple[tuple[Any, ...], int, int]]:
    """Blocks of scores: the index of heads, the first row, and the row after the last.

    Args:
        lead: the axes of heads; of those that share keys, only one counts.
        group: how many share keys.
        rows: how many rows of scores a head has.
        row: bytes of a row.
    """
    axis, inner = len(lead), group * rows * row
    while axis and inner * lead[axis - 1] <= BLOCK_BYTES:  # whole axes
        axis -= 1
        inner *= lead[axis]
    if inner <= BLOCK_BYTES and axis:
        some = max(1, BLOCK_BYTES // inner)
        for index in np.ndindex(*lead[: axis - 1]):
            for start in range(0, lead[axis - 1], some):
                yield (*index, slice(start, start + some)), 0, rows
        return
    most = max(1, BLOCK_BYTES // (group * row), -(-ROWS // group))
    some = -(-rows // -(-rows // most))  # of about one size
    for index in np.ndindex(*lead):
        for start in range(0, rows, some):
            yield index, start, min(start + some, rows)


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
    """``x`` (batch, heads, sequence, size) or (batch, sequence, heads * size), heads last but one."""
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
