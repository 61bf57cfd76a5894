"""GroupQueryAttention, whose caches grow or have a fixed size."""

from __future__ import annotations

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


def _grouped(b: Body) -> tuple[str, ...]:
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
    for pair in (
        ("key", "value"),
        ("past_key", "past_value"),
        ("cos_cache", "sin_cache"),
        ("q_norm_weight", "k_norm_weight"),
    ):
        if b.has(pair[0]) != b.has(pair[1]):
            b.wrong(f"of inputs {pair[0]} and {pair[1]}, one is absent")
    q, k, v = _split(b, count, shared)
    length = b("Shape", q, start=2, end=3)
    ends = b("Add", b("Reshape", b("Cast", "seqlens_k", to=7), [-1]), 1)  # of what each sample has, with what is new
    total = b("Reshape", b("Cast", "total_sequence_length", to=7), [1])
    # The first step, when nothing is there yet: samples that are shorter have padding behind, not before.
    is_first = b("Equal", total, length)
    starts = b("Where", is_first, 0, b("Sub", ends, length))
    steps = b("Range", 0, b("Squeeze", length), 1)
    places = b("Add", b("Unsqueeze", starts, [1]), steps)  # (batch, sequence)
    if b.has("q_norm_weight"):
        words = {"epsilon": of_node["qk_norm_epsilon"]}
        q, k = b("RMSNormalization", q, "q_norm_weight", **words), b("RMSNormalization", k, "k_norm_weight", **words)
    if of_node["do_rotary"]:
        if not b.has("cos_cache"):
            b.wrong("do_rotary needs the inputs cos_cache and sin_cache")
        positions = places
        if b.has("position_ids"):  # of the first step, only the first one counts
            first = b("Slice", b("Reshape", "position_ids", [-1]), [0], [1])
            ones = b("Expand", b("Add", first, steps), b("Shape", places))
            positions = b("Where", is_first, ones, "position_ids")
        q, k = [
            rotary.rotated(b, x, positions, "cos_cache", "sin_cache", of_node["rotary_interleaved"]) for x in (q, k)
        ]
    keys, values = [k, k], [v, v]
    if b.has("past_key"):
        keys, values = [
            _kept(b, past, new, ends, starts, total, length) for past, new in (("past_key", k), ("past_value", v))
        ]
    visible = _visible(b, total, places, ends)
    sink = b.optional("head_sink")
    if not sink and of_node["smooth_softmax"] == 1:
        sink = b("Reshape", b.number(0, "query"), [1])
    made, _ = attend(
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


def _split(b: Body, count: int, shared: int) -> tuple[str, str, str]:
    """Queries, keys and values by head, which may come as one."""
    if b.has("key"):
        return heads(b, "query", count), heads(b, "key", shared), heads(b, "value", shared)
    q, k, v = b.several(3, "Split", heads(b, "query", count + 2 * shared), [count, shared, shared], axis=1)
    return q, k, v


def _kept(b: Body, past: str, new: str, ends: str, starts: str, total: str, length: str) -> list[str]:
    """A cache with what is new, and as much of it as is read.

    What is full is appended to, so that it can grow in place. Else each sample's
    is written at its place: over what is there, if the cache has room for all.
    """
    size = b("Shape", past, start=2, end=3)
    all_ends = b("Concat", ends, total, axis=0)
    both = b("Add", size, length)
    none_less, none_more = (b("Equal", b(reduce, all_ends, [0]), both) for reduce in ("ReduceMin", "ReduceMax"))

    def grown() -> list[str]:
        found = b("Concat", past, new, axis=2)
        return [found, found]

    def written(over: str) -> list[str]:
        found = b("TensorScatter", over, new, starts, axis=2)
        return [found, b("Slice", found, [0], total, [2])]

    def widened() -> list[str]:
        missing = b("Concat", b("Shape", past, end=2), b("Sub", total, size), b("Shape", past, start=3), axis=0)
        return written(b("Concat", past, b("Expand", b.number(0, past), missing), axis=2))

    return b.choose(
        b("Squeeze", b("And", none_less, none_more)),
        grown,
        lambda: b.choose(b("Squeeze", b("Greater", total, size)), widened, lambda: written(past)),
    )


def _visible(b: Body, total: str, places: str, ends: str) -> str:
    """Which keys each query sees: (batch, 1, sequence, total), where other keys than so many do not fit."""
    window = b.attributes["local_window_size"]
    keys = b("Range", 0, b("Squeeze", total), 1)
    if not b.attributes["causal"]:
        return b("Less", keys, b("Reshape", ends, [-1, 1, 1, 1]))
    last = b("Unsqueeze", places, [1, 3])
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
