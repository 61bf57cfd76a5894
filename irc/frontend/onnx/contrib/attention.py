"""Attention of heads that have keys and values of their own, or share them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from irc.frontend.onnx.contrib.body import FAR, Body, operator

COMMON = "int num_heads, float scale = 0, float mask_filter_value = -10000, int unidirectional = 0"
"""Attributes that all have where heads have keys of their own."""

# RotaryEmbedding of ``com.microsoft``: it may be given only a first position, and the cosines may imply the heads.


def rotated(b: Body, x: str, positions: str, cos: str, sin: str, interleaved: int) -> str:
    """``x``, (batch, heads, sequence, size), rotated as far along the last axis as there are cosines."""
    half = b.size(cos, 1)
    words = {"interleaved": interleaved}
    if half is not None:
        return b("RotaryEmbedding", x, cos, sin, positions, rotary_embedding_dim=2 * half, **words)
    width = b("Mul", b("Shape", cos, start=1), [2])
    first = b("Slice", x, [0], width, [3])
    rest = b("Slice", x, width, [FAR], [3])
    return b("Concat", b("RotaryEmbedding", first, cos, sin, positions, **words), rest, axis=3)


@operator(
    "RotaryEmbedding(input, position_ids, cos_cache, sin_cache) -> output",
    "int interleaved = 0, int is_packed_batching = 0, int num_heads = 0, int rotary_embedding_dim = 0, float scale = 1",
    since=23,
)
def _rotary(b: Body) -> str:
    of_node = b.attributes
    heads, width = of_node["num_heads"], of_node["rotary_embedding_dim"]
    if width < 0 or heads < 0 or width % 2:
        b.wrong(f"rotary_embedding_dim is {width} and num_heads {heads}")
    if width and not heads:
        b.wrong("attribute 'num_heads' must be given with rotary_embedding_dim")
    if of_node["scale"] != 1:
        b.refuse(f"scale is {of_node['scale']}")

    def by_head() -> list[str]:
        return [_rotate(b, "input")]

    def joined() -> list[str]:
        """The result for an input (batch, sequence, heads * size); the cosines may have to tell the heads."""
        size = [-1] if heads else b("Mul", b("Shape", "cos_cache", start=1), [2])
        apart = b("Reshape", "input", b("Concat", [0, 0], [heads or -1], size, axis=0))
        turned = _rotate(b, b("Transpose", apart, perm=[0, 2, 1, 3]))
        return [b("Reshape", b("Transpose", turned, perm=[0, 2, 1, 3]), b("Shape", "input"))]

    rank = b.rank("input")
    if rank is not None:
        return (by_head() if rank == 4 else joined())[0]
    is_by_head = b("Equal", b("Size", b("Shape", "input")), 4)
    return b.choose(is_by_head, by_head, joined)[0]


def _rotate(b: Body, x: str) -> str:
    """``x``, by head, at the positions of the node."""
    return rotated(b, x, _positions(b, x), "cos_cache", "sin_cache", b.attributes["interleaved"])


def _positions(b: Body, x: str) -> str:
    """The positions of ``x`` (batch, heads, sequence, size) as (batch, sequence) or for the first only."""
    if b.rank("position_ids") == 2:
        return "position_ids"
    shape = b("Shape", "position_ids")
    rank = b("Size", shape)
    matrix = b("Reshape", "position_ids", b("Slice", b("Concat", [1], shape, axis=0), [-2], [FAR], [0]))
    length = b("Shape", x, start=2, end=3)
    steps = b("Mul", b("Range", 0, b("Squeeze", length), 1), b("Sub", 2, rank))
    return b("Expand", b("Add", matrix, steps), b("Concat", b("Shape", x, end=1), length, axis=0))


# -- attention -----------------------------------------------------------------


def heads(b: Body, x: str, count: int) -> str:
    """``x``, (batch, sequence, heads * size), by head: (batch, heads, sequence, size)."""
    return b("Transpose", b("Reshape", x, [0, 0, count, -1]), perm=[0, 2, 1, 3])


def attend(b: Body, q: str, k: str, v: str, *, bias: str = "", visible: str = "", sink: str = "", **words: Any) -> str:
    """The result of the heads, (batch, sequence, heads * size).

    Args:
        b: the body.
        q: queries, (batch, heads, sequence, size).
        k: keys, (batch, heads or a part of them, length, size).
        v: values, likewise.
        bias: what is added to scores, (batch, heads, sequence, length) or broadcast to it; "": nothing.
        visible: likewise, which keys each query sees; "": all.
        sink: for each head, the score of a key that is not there.
        words: other attributes of `irc::attention`, if they say anything.
    """
    words = {name: value for name, value in {"scale": b.attributes["scale"], **words}.items() if value}
    made = b.attention([q, k, v, bias, visible, sink], **words)
    return b("Reshape", b("Transpose", made, perm=[0, 2, 1, 3]), [0, 0, -1])


@operator(
    "MultiHeadAttention(query, key?, value?, bias?, key_padding_mask?, attention_bias?, past_key?, past_value?,"
    "past_sequence_length?, cache_indirection?) -> output, present_key?, present_value?, qk?",
    COMMON,
)
def _multi_head(b: Body) -> tuple[str, ...]:
    count = _heads_of(b)
    for name in ("past_sequence_length", "cache_indirection"):
        if b.has(name):
            b.refuse(f"input {name}")
    if "qk" in b.outputs:
        b.refuse("output qk")
    if b.has("past_key") != b.has("past_value"):
        b.wrong("of inputs past_key and past_value, one is absent")
    if b.has("value") and not b.has("key"):
        b.wrong("input key is absent, and value is not")
    q, k, v = _operands(b, count)
    before = ""
    if b.has("past_key"):
        before = b("Shape", "past_key", start=2, end=3)
        k, v = b("Concat", "past_key", k, axis=2), b("Concat", "past_value", v, axis=2)
    visible = _causal(b, q, k, before) if b.attributes["unidirectional"] else ""
    return attend(b, q, k, v, visible=visible, bias=_added(b, "key_padding_mask", k, "query")), k, v


def _operands(b: Body, count: int) -> list[str]:
    """Queries, keys and values by head, split if they come as one and reshaped unless by head already."""
    if not b.has("key"):  # (batch, sequence, heads, 3, size)
        return [_biased(b, x, i, count) for i, x in enumerate(_unpacked(b, "query", 3))]
    q = _biased(b, "query", 0, count)
    if not b.has("value"):  # (batch, sequence, heads, 2, size)
        return [q, *(_biased(b, x, i, count) for i, x in enumerate(_unpacked(b, "key", 2), 1))]

    def apart() -> list[str]:
        return [_biased(b, x, i, count) for i, x in enumerate(("key", "value"), 1)]

    def by_head() -> list[str]:
        return ["key", "value"]

    rank = b.rank("key")
    if rank is not None:
        return [q, *(by_head() if rank == 4 else apart())]
    is_by_head = b("Equal", b("Size", b("Shape", "key")), 4)
    return [q, *b.choose(is_by_head, lambda: [b("Identity", x) for x in by_head()], apart)]


def _unpacked(b: Body, x: str, parts: int) -> list[str]:
    """The ``parts`` that ``x`` has for each head, of shape (batch, sequence, heads * size)."""
    return [b("Reshape", part, [0, 0, -1]) for part in b.several(parts, "Split", x, axis=3, num_outputs=parts)]


def _biased(b: Body, x: str, place: int, count: int) -> str:
    """``x`` by head, with its part of the bias, of which queries and keys have as much each."""
    if b.has("bias"):
        width = b("Shape", x, start=2)
        first = b("Mul", width, [place]) if place < 2 else b("Neg", width)
        x = b("Add", x, b("Slice", "bias", first, b("Add", first, width) if place < 2 else [FAR], [0]))
    return heads(b, x, count)


def _causal(b: Body, q: str, k: str, before: str = "") -> str:
    """Which keys each query sees: those of the past, and the new ones up to its own position."""
    last = b("Sub", b("Squeeze", b("Shape", q, start=2, end=3)), 1)
    places = b("Range", 0, last, 1)
    places = b("Concat", b("Add", places, before) if before else places, [FAR], axis=0)
    keys = b("Range", 0, b("Squeeze", b("Shape", k, start=2, end=3)), 1)
    return b("LessOrEqual", keys, b("Unsqueeze", places, [1]))


def _added(b: Body, mask: str, k: str, like: str) -> str:
    """What is added to the scores: the bias, and a value where the mask is 0; "" if neither is given."""
    bias = b.optional("attention_bias")
    if not b.has(mask):
        return bias

    def by_ends() -> list[str]:
        """A mask given by the end, and possibly also the beginning, of each sample."""
        batch = b("Shape", k, end=1)
        both = b("Concat", mask, b("Expand", b.integers(0, np.int32), batch), axis=0)
        ends, starts = (
            b("Reshape", b("Slice", both, first, end, [0]), [-1, 1, 1, 1])
            for first, end in (([0], batch), (batch, b("Add", batch, batch)))
        )
        keys = b("Cast", b("Range", 0, b("Squeeze", b("Shape", k, start=2, end=3)), 1), to=6)
        return [b("And", b("GreaterOrEqual", keys, starts), b("Less", keys, ends))]

    def by_elements() -> list[str]:
        """A mask with an element for each key, possibly for each query."""
        shape = b("Shape", mask)
        rows = b("Slice", b("Concat", [1], b("Slice", shape, [1], [-1], [0]), axis=0), [-1], [FAR], [0])
        last = b("Slice", shape, [-1], [FAR], [0])
        whole = b("Concat", b("Slice", shape, [0], [1], [0]), [1], rows, last, axis=0)
        return [b("Greater", b("Reshape", mask, whole), b.integers(0, np.int32))]

    rank = b.rank(mask)
    if rank is None:
        (kept,) = b.choose(b("Equal", b("Size", b("Shape", mask)), 1), by_ends, by_elements)
    elif rank > 3:
        b.refuse(f"a {mask} of {rank} dimensions")
    else:
        (kept,) = by_ends() if rank == 1 else by_elements()
    added = b("Where", kept, b.number(0, like), b.number(b.attributes["mask_filter_value"], like))
    return b("Add", added, bias) if bias else added


def _heads_of(b: Body) -> int:
    count: int = b.attributes["num_heads"]
    if count < 1:
        b.wrong(f"num_heads is {count}")
    return count


@operator(
    "Attention(input, weights, bias?, mask_index?, past?, attention_bias?, past_sequence_length?) -> output, present?",
    f"{COMMON}, int do_rotary = 0, int past_present_share_buffer = 0, ints qkv_hidden_sizes =,"
    "int rotary_embedding_dim = 0",
)
def _self_attention(b: Body) -> tuple[str, ...]:
    """The one that has the weights of queries, keys and values, and one cache for both."""
    if b.has("past_sequence_length"):
        b.refuse("input past_sequence_length")
    projected = b("MatMul", "input", "weights")
    if b.has("bias"):
        projected = b("Add", projected, "bias")
    return of_one(b, projected, "input")


def of_one(b: Body, projected: str, like: str) -> tuple[str, ...]:
    """Attention of what is ``projected``: queries, keys and values side by side, of the type of ``like``."""
    count = _heads_of(b)
    for name in ("do_rotary", "past_present_share_buffer", "rotary_embedding_dim"):
        if b.attributes.get(name):
            b.refuse(f"{name} is {b.attributes[name]}")
    sizes = b.attributes.get("qkv_hidden_sizes")
    if sizes and (len(sizes) != 3 or min(sizes) < 1 or sizes[0] != sizes[1]):
        b.wrong(f"qkv_hidden_sizes is {list(sizes)}")
    how: dict[str, Any] = {} if sizes else {"num_outputs": 3}
    parts = b.several(3, "Split", projected, *([list(sizes)] if sizes else []), axis=2, **how)
    q, k, v = (heads(b, x, count) for x in parts)
    present = ""
    if b.has("past") or "present" in b.outputs:
        present = b("Concat", b("Unsqueeze", k, [0]), b("Unsqueeze", v, [0]), axis=0)
    if b.has("past"):
        present = b("Concat", "past", present, axis=3)
        k, v = (b("Squeeze", b("Slice", present, [i], [i + 1], [0]), [0]) for i in range(2))
    causal = "last" if b.attributes["unidirectional"] else ""
    return attend(b, q, k, v, causal=causal, bias=_added(b, "mask_index", k, like)), present


# GroupQueryAttention, whose caches grow or have a fixed size.


_UNSUPPORTED = {
    **dict.fromkeys(("kv_cache_bit_width", "sliding_window_cache", "qk_output"), 0),
    **dict.fromkeys(("k_quant_type", "v_quant_type"), "NONE"),
}
"""Attributes of GroupQueryAttention, and what they must be."""


_TOGETHER = ("key value", "past_key past_value", "cos_cache sin_cache", "q_norm_weight k_norm_weight")
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


@operator(
    "GroupQueryAttention(query, key?, value?, past_key?, past_value?, seqlens_k, total_sequence_length, cos_cache?,"
    "sin_cache?, position_ids?, attention_bias?, head_sink?, k_scale?, v_scale?, q_norm_weight?, k_norm_weight?)"
    " -> output, present_key?, present_value?, output_qk?",
    "int num_heads, int kv_num_heads, float scale = 0, float softcap = 0, int do_rotary = 0,"
    "int rotary_interleaved = 0, int local_window_size = -1, int causal = 1, int smooth_softmax = -1,"
    "float qk_norm_epsilon = 1e-6,"
    "int kv_cache_bit_width = 0, int sliding_window_cache = 0, int qk_output = 0, string k_quant_type = NONE,"
    "string v_quant_type = NONE",
    since=24,
)
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
        at = _new_positions(b, times)
        q, k = [rotated(b, x, at, "cos_cache", "sin_cache", of_node["rotary_interleaved"]) for x in (q, k)]
    keys, values = [k, k], [v, v]
    if b.has("past_key"):
        keys, values = _kept(b, "past_key", k, times), _kept(b, "past_value", v, times)
    visible = _visible(b, times)
    sink = b.optional("head_sink")
    if not sink and of_node["smooth_softmax"] == 1:
        sink = b("Reshape", b.number(0, "query"), [1])
    words = {"softcap": of_node["softcap"], "grouped": int(count != shared)}
    bias = b.optional("attention_bias")
    made = attend(b, q, keys[1], values[1], visible=visible, bias=bias, sink=sink, **words)
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
    for one, other in map(str.split, _TOGETHER):
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


def _new_positions(b: Body, times: _Times) -> str:
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
    """Which keys each query sees: (batch, 1, sequence, total), so that another number of keys fails."""
    window = b.attributes["local_window_size"]
    keys = b("Range", 0, b("Squeeze", times.total), 1)
    if not b.attributes["causal"]:
        return b("Less", keys, b("Reshape", times.ends, [-1, 1, 1, 1]))
    last = b("Unsqueeze", times.places, [1, 3])
    seen = b("LessOrEqual", keys, last)
    if window < 0:
        return seen
    return b("And", seen, b("Greater", keys, b("Sub", last, window)))
