"""Attention of heads that have keys and values of their own, or share them."""

from __future__ import annotations

import numpy as np

from irc.frontend.onnx.contrib.body import FAR, Body
from irc.frontend.onnx.contrib.table import Row, row


def heads(b: Body, x: str, count: int) -> str:
    """``x``, (batch, sequence, heads * size), by head: (batch, heads, sequence, size)."""
    return b("Transpose", b("Reshape", x, [0, 0, count, -1]), perm=[0, 2, 1, 3])


def attend(
    b: Body,
    q: str,
    k: str,
    v: str,
    count: int,
    shared: int,
    *,
    like: str,
    scale: float,
    cap: float = 0,
    causal: str = "",
    visible: str = "",
    bias: str = "",
    sink: str = "",
) -> str:
    """The result of the heads, (batch, sequence, heads * size).

    Args:
        b: the body.
        q: queries, (batch, count, sequence, size).
        k: keys, (batch, shared, length, size).
        v: values, likewise.
        count: heads of queries.
        shared: heads of keys and values.
        like: an input of their element type.
        scale: of the scores; 0: by the size of the heads.
        cap: the scores stay below it; 0: no cap.
        causal: "last" if the last query sees all keys, and each one before it a key less; "": all see all.
        visible: which keys each query sees, (batch, count, sequence, length) or broadcast to it; "": all.
        bias: likewise, what is added to scores.
        sink: for each head, the score of a key that is not there.
    """
    words = {"scale": scale, "softcap": cap, "causal": causal, "grouped": int(count != shared)}
    made = b.attention([q, k, v, bias, visible, sink], **{name: value for name, value in words.items() if value})
    return b("Reshape", b("Transpose", made, perm=[0, 2, 1, 3]), [0, 0, -1])


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
    made = attend(
        b,
        q,
        k,
        v,
        count,
        count,
        like="query",
        scale=b.attributes["scale"],
        visible=_causal(b, q, k, before) if b.attributes["unidirectional"] else "",
        bias=_added(b, "key_padding_mask", k, "query"),
    )
    return made, k, v


def _operands(b: Body, count: int) -> list[str]:
    """Queries, keys and values by head; several may come as one, and what comes by head already is not changed."""
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
    """Which keys each query sees: the keys of the past, and the new ones up to its own; the last query sees all."""
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
    if sizes:
        parts = b.several(3, "Split", projected, list(sizes), axis=2)
    else:
        parts = b.several(3, "Split", projected, axis=2, num_outputs=3)
    q, k, v = (heads(b, x, count) for x in parts)
    present = ""
    if b.has("past") or "present" in b.outputs:
        present = b("Concat", b("Unsqueeze", k, [0]), b("Unsqueeze", v, [0]), axis=0)
    if b.has("past"):
        present = b("Concat", "past", present, axis=3)
        k, v = (b("Squeeze", b("Slice", present, [i], [i + 1], [0]), [0]) for i in range(2))
    made = attend(
        b,
        q,
        k,
        v,
        count,
        count,
        like=like,
        scale=b.attributes["scale"],
        causal="last" if b.attributes["unidirectional"] else "",
        bias=_added(b, "mask_index", k, like),
    )
    return made, present


COMMON = "int num_heads, float scale = 0, float mask_filter_value = -10000, int unidirectional = 0"
"""Attributes that all have where heads have keys of their own."""

ROWS: list[Row] = [
    row(
        "MultiHeadAttention(query, key?, value?, bias?, key_padding_mask?, attention_bias?, past_key?, past_value?,"
        "past_sequence_length?, cache_indirection?) -> output, present_key?, present_value?, qk?",
        _multi_head,
        COMMON,
    ),
    row(
        "Attention(input, weights, bias?, mask_index?, past?, attention_bias?, past_sequence_length?)"
        " -> output, present?",
        _self_attention,
        f"{COMMON}, int do_rotary = 0, int past_present_share_buffer = 0, ints qkv_hidden_sizes =,"
        "int rotary_embedding_dim = 0",
    ),
]
