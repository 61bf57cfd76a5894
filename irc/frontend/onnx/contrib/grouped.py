"""GroupQueryAttention, whose caches grow or have a fixed size."""

from __future__ import annotations

from typing import NamedTuple

from irc.frontend.onnx.contrib import rotary
from irc.frontend.onnx.contrib.attention import attend, heads
from irc.frontend.onnx.contrib.body import Body
from irc.frontend.onnx.contrib.table import Row, row

_UNSUPPORTED = {
    "kv_cache_bit_width": 0,
    "sliding_window_cache": 0,
    "qk_output": 0,
    "k_quant_type": "NONE",
    "v_quant_type": "NONE",
}
"""Attributes of GroupQueryAttention, and what they must be."""


_TOGETHER = (
    ("key", "value"),
    ("past_key", "past_value"),
    ("cos_cache", "sin_cache"),
    ("q_norm_weight", "k_norm_weight"),
)
"""Inputs that a node has both, or neither of them."""


class _Times(NamedTuple):
    """The positions in time of the new keys, after those of the past.

    Attributes:
        length: how many are new, of shape (1,).
        total: how many keys there are with these, in the longest sample, (1,).
        starts: the position of the first new key of each sample, (batch,).
        ends: the position after its last key, (batch,).
        steps: 0, 1, ... for the new keys, (length,).
        places: the positions of the new keys, (batch, length).
        is_first: whether there is no past, (1,).
    """

    length: str
    total: str
    starts: str
    ends: str
    steps: str
    places: str
    is_first: str


def _grouped(b: Body) -> tuple[str, ...]:
    _check(b)
    of_node = b.attributes
    count, shared = of_node["num_heads"], of_node["kv_num_heads"]
    q, k, v = _split(b, count, shared)
    times = _times(b, q)
    if b.has("q_norm_weight"):
        words = {"epsilon": of_node["qk_norm_epsilon"]}
        q, k = b("RMSNormalization", q, "q_norm_weight", **words), b("RMSNormalization", k, "k_norm_weight", **words)
    if of_node["do_rotary"]:
        at = _positions(b, times)
        q, k = [rotary.rotated(b, x, at, "cos_cache", "sin_cache", of_node["rotary_interleaved"]) for x in (q, k)]
    keys, values = [k, k], [v, v]
    if b.has("past_key"):
        keys, values = _kept(b, "past_key", k, times), _kept(b, "past_value", v, times)
    visible = _visible(b, times)
    sink = b.optional("head_sink")
    if not sink and of_node["smooth_softmax"] == 1:
        sink = b("Reshape", b.number(0, "query"), [1])
    made = attend(
        b,
        q,
        keys[1],
        values[1],
        count,
        shared,
        like="query",
        scale=of_node["scale"],
        cap=of_node["softcap"],
        visible=visible,
        bias=b.optional("attention_bias"),
        sink=sink,
    )
    return made, keys[0], values[0]


def _check(b: Body) -> None:
    """Raise IRC123 for variants that irc has no body for, IRC127 for attributes that are wrong."""
    of_node = b.attributes
    count, shared = of_node["num_heads"], of_node["kv_num_heads"]
    if not 0 < shared <= count or count % shared:
        b.wrong(f"{count} heads (num_heads) cannot share {shared} (kv_num_heads) evenly")
    for name, only in _UNSUPPORTED.items():
        if of_node[name] != only:
            b.refuse(f"{name} is {of_node[name]!r}")
    window, causal = of_node["local_window_size"], of_node["causal"]
    if causal not in (0, 1) or window == 0 or window < -1 or (window > 0 and not causal):
        b.wrong(f"causal is {causal} and local_window_size {window}")
    for name in ("k_scale", "v_scale"):
        if b.has(name):
            b.refuse(f"input {name}")
    if "output_qk" in b.outputs:
        b.refuse("output output_qk")
    for one, other in _TOGETHER:
        if b.has(one) != b.has(other):
            b.wrong(f"of inputs {one} and {other}, one is absent")
    if of_node["do_rotary"] and not b.has("cos_cache"):
        b.wrong("do_rotary needs the inputs cos_cache and sin_cache")


def _times(b: Body, q: str) -> _Times:
    """Where the keys of as many new steps as ``q`` has are."""
    length = b("Shape", q, start=2, end=3)
    ends = b("Add", b("Reshape", b("Cast", "seqlens_k", to=7), [-1]), 1)
    total = b("Reshape", b("Cast", "total_sequence_length", to=7), [1])
    is_first = b("Equal", total, length)  # samples that are shorter then have padding behind, not before
    starts = b("Where", is_first, 0, b("Sub", ends, length))
    steps = b("Range", 0, b("Squeeze", length), 1)
    places = b("Add", b("Unsqueeze", starts, [1]), steps)
    return _Times(length, total, starts, ends, steps, places, is_first)


def _positions(b: Body, times: _Times) -> str:
    """The positions to rotate the new keys by, (batch, length)."""
    if not b.has("position_ids"):
        return times.places
    first = b("Slice", b("Reshape", "position_ids", [-1]), [0], [1])  # at the first step, only this one counts
    from_there = b("Expand", b("Add", first, times.steps), b("Shape", times.places))
    return b("Where", times.is_first, from_there, "position_ids")


def _split(b: Body, count: int, shared: int) -> tuple[str, str, str]:
    """Queries, keys and values by head; all three may come as one input."""
    if b.has("key"):
        return heads(b, "query", count), heads(b, "key", shared), heads(b, "value", shared)
    q, k, v = b.several(3, "Split", heads(b, "query", count + 2 * shared), [count, shared, shared], axis=1)
    return q, k, v


def _kept(b: Body, past: str, new: str, times: _Times) -> list[str]:
    """A cache with the new keys or values, and the part of it that is read.

    A full cache is appended to, so that it can grow in place. Otherwise the new ones of each sample
    are written at their positions: over those in the cache, if it has room for all.
    """
    total = times.total
    size = b("Shape", past, start=2, end=3)
    all_ends = b("Concat", times.ends, total, axis=0)
    both = b("Add", size, times.length)
    none_less, none_more = (b("Equal", b(reduce, all_ends, [0]), both) for reduce in ("ReduceMin", "ReduceMax"))

    def grown() -> list[str]:
        found = b("Concat", past, new, axis=2)
        return [found, found]

    def written(over: str) -> list[str]:
        found = b("TensorScatter", over, new, times.starts, axis=2)
        return [found, b("Slice", found, [0], total, [2])]

    def widened() -> list[str]:
        missing = b("Concat", b("Shape", past, end=2), b("Sub", total, size), b("Shape", past, start=3), axis=0)
        return written(b("Concat", past, b("Expand", b.number(0, past), missing), axis=2))

    return b.choose(
        b("Squeeze", b("And", none_less, none_more)),
        grown,
        lambda: b.choose(b("Squeeze", b("Greater", total, size)), widened, lambda: written(past)),
    )


def _visible(b: Body, times: _Times) -> str:
    """Which keys each query sees: (batch, 1, sequence, total), so that any other number of keys is an error."""
    window = b.attributes["local_window_size"]
    keys = b("Range", 0, b("Squeeze", times.total), 1)
    if not b.attributes["causal"]:
        return b("Less", keys, b("Reshape", times.ends, [-1, 1, 1, 1]))
    last = b("Unsqueeze", times.places, [1, 3])
    seen = b("LessOrEqual", keys, last)
    if window < 0:
        return seen
    return b("And", seen, b("Greater", keys, b("Sub", last, window)))


ROWS: list[Row] = [
    row(
        "GroupQueryAttention(query, key?, value?, past_key?, past_value?, seqlens_k, total_sequence_length, cos_cache?,"
        "sin_cache?, position_ids?, attention_bias?, head_sink?, k_scale?, v_scale?, q_norm_weight?, k_norm_weight?)"
        " -> output, present_key?, present_value?, output_qk?",
        _grouped,
        "int num_heads, int kv_num_heads, float scale = 0, float softcap = 0, int do_rotary = 0,"
        "int rotary_interleaved = 0, int local_window_size = -1, int causal = 1, int smooth_softmax = -1,"
        "float qk_norm_epsilon = 1e-6,"
        "int kv_cache_bit_width = 0, int sliding_window_cache = 0, int qk_output = 0, string k_quant_type = NONE,"
        "string v_quant_type = NONE",
        since=24,
    ),
]
