"""Operators of com.microsoft: attention, with caches, against NumPy."""

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import irc
from irc.frontend.onnx import import_model
from tests.frontend.contrib import check, contrib, random
from tests.frontend.helpers import refused

BATCH, HEADS, SHARED, SIZE = 2, 4, 2, 8


def rotate(x: np.ndarray, positions: np.ndarray, cos: np.ndarray, sin: np.ndarray, interleaved: bool) -> np.ndarray:
    """``x``, (batch, heads, sequence, size), of which the first elements are turned, in pairs."""
    half = cos.shape[1]
    c, s = (table[positions][:, None] for table in (cos, sin))
    at = (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (slice(half), slice(half, 2 * half))
    a, b = (x[..., part] for part in at)
    found = x.copy()
    found[..., at[0]], found[..., at[1]] = a * c - b * s, b * c + a * s
    return found


def by_head(x: np.ndarray, size: int = SIZE) -> np.ndarray:
    return x.reshape(*x.shape[:2], -1, size).swapaxes(1, 2)


def joined(x: np.ndarray) -> np.ndarray:
    return x.swapaxes(1, 2).reshape(len(x), x.shape[2], -1)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.covering(2)
@pytest.mark.parametrize("is_by_head", [False, True])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("width", [0, 4])
@pytest.mark.parametrize("positions", [[5], [[0, 3, 1], [7, 2, 6]]])
def test_rotary_embedding(is_by_head: bool, interleaved: int, width: int, positions: list[Any]) -> None:
    x, half = random(0, BATCH, 3, HEADS * SIZE), (width or SIZE) // 2
    cos, sin = random(1, 9, half), random(2, 9, half)
    at = np.array(positions)
    places = np.broadcast_to(at + np.arange(3), (BATCH, 3)) if at.ndim == 1 else at
    turned = rotate(by_head(x), places, cos, sin, bool(interleaved))
    arrays = {"x": by_head(x).copy() if is_by_head else x, "at": at, "cos": cos, "sin": sin}
    words = {"interleaved": interleaved, **({"rotary_embedding_dim": width, "num_heads": HEADS} if width else {})}
    for constants in ("", "cos sin"):
        check({"y": turned if is_by_head else joined(turned)}, "RotaryEmbedding", arrays, constants=constants, **words)


def grouped(
    length: int,
    ends: list[int],
    total: int,
    capacity: int | None,
    *,
    packed: bool = False,
    cos: np.ndarray | None = None,
    sin: np.ndarray | None = None,
    interleaved: int = 0,
    positions: np.ndarray | None = None,
    window: int = -1,
    cap: float = 0,
    scale: float = 0,
    bias: np.ndarray | None = None,
    sink: np.ndarray | None = None,
    smooth: bool = False,
    norms: tuple[np.ndarray, np.ndarray] | None = None,
    causal: int = 1,
) -> None:
    """Check GroupQueryAttention by what NumPy computes sample by sample, head by head, row by row."""
    batch = len(ends)
    q, k, v = (random(i, batch, length, n * SIZE) for i, n in enumerate((HEADS, SHARED, SHARED)))
    past = [random(i, batch, SHARED, capacity, SIZE) for i in (3, 4)] if capacity is not None else [None, None]
    starts = [0 if total == length else end - length for end in ends]
    queries, new = by_head(q), [by_head(k), by_head(v)]
    if norms is not None:
        queries, new[0] = (
            x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * w for x, w in zip((queries, new[0]), norms)
        )
    if cos is not None and sin is not None:
        places = np.array(starts)[:, None] + np.arange(length) if positions is None else positions
        queries, new[0] = (rotate(x, places, cos, sin, bool(interleaved)) for x in (queries, new[0]))
    kept = [np.zeros((batch, SHARED, max(total, capacity or 0), SIZE), np.float32) for _ in new]
    for cache, before, x in zip(kept, past, new):
        if before is not None:
            cache[:, :, :capacity] = before
        for i, start in enumerate(starts):
            cache[i, :, start : start + length] = x[i]
    made = np.zeros((batch, HEADS, length, SIZE), np.float32)
    for i, h, row in itertools.product(range(batch), range(HEADS), range(length)):
        end = starts[i] + row + 1 if causal else ends[i]
        first = max(0, end - window) if window > 0 else 0
        keys, values = (cache[i, h * SHARED // HEADS, first:end] for cache in kept)
        scores = keys @ queries[i, h, row] * (scale or SIZE**-0.5)
        scores = np.tanh(scores / cap) * cap if cap else scores
        if bias is not None:
            scores = scores + bias[min(i, len(bias) - 1), min(h, bias.shape[1] - 1), row, first:end]
        away = [sink[h]] if sink is not None else [0.0] if smooth else []
        made[i, h, row] = softmax(np.append(scores, away))[: end - first] @ values
    arrays = {
        "q": np.concatenate([q, k, v], -1) if packed else q,
        "k": None if packed else k,
        "v": None if packed else v,
        "past_k": past[0],
        "past_v": past[1],
        "seqlens": np.array(ends, np.int32) - 1,
        "total": np.array(total, np.int32),
        "cos": cos,
        "sin": sin,
        "at": positions,
        "bias": bias,
        "sink": sink,
        "k_scale": None,
        "v_scale": None,
        "norm_q": None if norms is None else norms[0],
        "norm_k": None if norms is None else norms[1],
    }
    words = {"num_heads": HEADS, "kv_num_heads": SHARED, "do_rotary": int(cos is not None), "causal": causal}
    words |= {"rotary_interleaved": interleaved, "local_window_size": window, "smooth_softmax": int(smooth)}
    check(
        {"y": joined(made), "k_out": kept[0], "v_out": kept[1]},
        "GroupQueryAttention",
        arrays,
        softcap=float(cap),
        scale=float(scale),
        **words,
    )


STEPS = {
    "prompt": (5, [5, 5], 5, None),
    "prompt into a buffer": (5, [5, 5], 5, 8),
    "prompt and an empty cache": (5, [5, 5], 5, 0),
    "prompts that are padded behind": (5, [5, 3], 5, 8),
    "token": (1, [7, 7], 7, 6),
    "token into a buffer": (1, [7, 7], 7, 9),
    "token into a full buffer": (1, [7, 7], 7, 7),
    "samples that have less": (1, [7, 4], 7, 9),
    "samples that have less, and no buffer": (1, [7, 4], 7, 6),
    "several tokens": (3, [7], 7, 4),
    "several tokens into a buffer": (3, [7], 7, 9),
}
FEATURES: dict[str, dict[str, Any]] = {
    "plain": {},
    "packed": {"packed": True},
    "rotary": {"cos": random(8, 12, 4), "sin": random(9, 12, 4), "packed": True},
    "interleaved": {"cos": random(8, 12, 2), "sin": random(9, 12, 2), "interleaved": 1},
    "window": {"window": 2},
    "cap and scale": {"cap": 0.5, "scale": 1.5},
    "sinks": {"sink": random(5, HEADS)},
    "smooth": {"smooth": True},
    "norms": {"norms": (random(6, SIZE), random(7, SIZE)), "cos": random(8, 12, 4), "sin": random(9, 12, 4)},
    "not causal": {"causal": 0},
}


@pytest.mark.covering(1)
@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("step", STEPS)
def test_group_query_attention(step: str, feature: str) -> None:
    length, ends, total, capacity = STEPS[step]
    grouped(length, ends, total, capacity, **FEATURES[feature])


def test_positions_that_are_given() -> None:
    """Of the first step only the first one counts, as in ONNX Runtime."""
    tables = {"cos": random(8, 20, 4), "sin": random(9, 20, 4)}
    grouped(1, [7, 7], 7, 6, positions=np.array([[3], [11]]), **tables)
    arrays = {
        **{name: random(i, 1, 3, n * SIZE) for i, (name, n) in enumerate((("q", HEADS), ("k", SHARED), ("v", SHARED)))},
        "past_k": None,
        "past_v": None,
        "ends": np.array([2], np.int32),
        "total": np.array(3, np.int32),
        **tables,
    }
    words = {"num_heads": HEADS, "kv_num_heads": SHARED, "do_rotary": 1}
    found = []
    for positions in ([[4, 5, 6]], [[4, 9, 1]]):
        model, feeds = contrib("GroupQueryAttention", {**arrays, "at": np.array(positions)}, "y k_out v_out", **words)
        found.append(irc.compile(model).run(feeds)["k_out"])
    np.testing.assert_array_equal(*found)


def decoder(capacity: int | None) -> onnx.ModelProto:
    """One layer as onnxruntime-genai exports it; its cache has so many positions, or grows."""
    positions = capacity or "past_sequence_length"
    nodes = [
        helper.make_node("ReduceSum", ["mask", "one"], ["sums"], keepdims=0),
        helper.make_node("Sub", ["sums", "one"], ["before"]),
        helper.make_node("Cast", ["before"], ["seqlens"], to=TensorProto.INT32),
        helper.make_node("Shape", ["mask"], ["shape"], start=1),
        helper.make_node("Cast", ["shape"], ["total"], to=TensorProto.INT32),
        helper.make_node(
            "GroupQueryAttention",
            ["x", "", "", "past_key_values.0.key", "past_key_values.0.value", "seqlens", "total", "cos", "sin"],
            ["y", "present.0.key", "present.0.value"],
            domain="com.microsoft",
            num_heads=HEADS,
            kv_num_heads=SHARED,
            do_rotary=1,
        ),
    ]
    caches = [
        helper.make_tensor_value_info(f"past_key_values.0.{name}", 1, ["n", SHARED, positions, SIZE])
        for name in ("key", "value")
    ]
    inputs = [
        helper.make_tensor_value_info("x", 1, ["n", "s", (HEADS + 2 * SHARED) * SIZE]),
        helper.make_tensor_value_info("mask", 7, ["n", "total_sequence_length"]),
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("y", "present.0.key", "present.0.value")]
    weights = {"one": np.array([1]), "cos": random(8, 4096, SIZE // 2), "sin": random(9, 4096, SIZE // 2)}
    tensors = [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs + caches, outputs, tensors)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def buffers(model: onnx.ModelProto, positions: int) -> dict[str, np.ndarray]:
    return {i.name: np.zeros((1, SHARED, positions, SIZE), np.float32) for i in model.graph.input[2:]}


def decoded(
    model: onnx.ModelProto, positions: int, capacity: int | None = None
) -> tuple[list[np.ndarray], irc.Session]:
    """What a session gives step by step, the first three tokens at once; each later step must stay in place."""
    session = irc.Session(irc.compile(model), capacity=capacity)
    results: list[np.ndarray] = []
    addresses: set[int] = set()
    lengths = (3, 1, 1, 1, 2, 1)
    for number, length in enumerate(lengths):
        total = sum(lengths[: number + 1])
        feeds = {"x": random(number, 1, length, (HEADS + 2 * SHARED) * SIZE), "mask": np.ones((1, total), np.int64)}
        given = {} if number else buffers(model, positions)
        results.append(session.run({**feeds, **given}, outputs=["y"])["y"])
        if number > 1:
            assert not session.counters.copied_bytes
            addresses.update(a.__array_interface__["data"][0] for a in session.caches.values())
    assert len(addresses) == 2
    return results, session


@pytest.mark.parametrize("declared", [None, 2048])
def test_caches_of_a_session(declared: int | None) -> None:
    """Those that grow are appended to, others written to, and both in place, by the same model."""
    fixed, session = decoded(decoder(declared), 2048)
    assert session.caches["past_key_values.0.key"].shape == (1, SHARED, 2048, SIZE)
    growing, session = decoded(decoder(None), 0, capacity=2048)
    assert session.caches["past_key_values.0.key"].shape == (1, SHARED, 9, SIZE)
    whole = np.concatenate(
        [random(i, 1, n, (HEADS + 2 * SHARED) * SIZE) for i, n in enumerate((3, 1, 1, 1, 2, 1))], axis=1
    )
    feeds = {"x": whole, "mask": np.ones((1, 9), np.int64), **buffers(decoder(None), 0)}
    at_once = irc.compile(decoder(None)).run(feeds)["y"]
    for found in (fixed, growing):
        np.testing.assert_allclose(np.concatenate(found, axis=1), at_once, rtol=1e-5, atol=1e-5)


def test_a_cache_without_room() -> None:
    """Sample 1 has more than its cache and what is new: that is an error, not another result."""
    model = decoder(4)
    feeds = {"x": random(0, 1, 3, 64), "mask": np.ones((1, 2), np.int64), **buffers(model, 4)}
    with pytest.raises(irc.Error, match=r"^IRC423: "):
        irc.compile(model).run(feeds)


def test_a_length_that_is_not_that_of_the_keys() -> None:
    arrays = {
        name: random(i, 1, 3, n * SIZE) for i, (name, n) in enumerate((("q", HEADS), ("k", SHARED), ("v", SHARED)))
    }
    arrays |= {"_": None, "__": None, "ends": np.array([6], np.int32), "total": np.array(7, np.int32)}
    model, feeds = contrib("GroupQueryAttention", arrays, "y", num_heads=HEADS, kv_num_heads=SHARED)
    with pytest.raises(irc.Error):
        irc.compile(model).run(feeds)


def attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, added: np.ndarray | float, before: int | None, scale: float = 0
) -> np.ndarray:
    """What heads give; ``before``: if each query sees keys up to its own, how many there are before the first's."""
    scores = q @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5) + added
    if before is not None:
        scores = np.where(np.arange(k.shape[2]) <= before + np.arange(q.shape[2])[:, None], scores, -np.inf)
    return joined(softmax(scores) @ v).astype(np.float32)


def masked(mask: np.ndarray | None, total: int, batch: int = BATCH, value: float = -10000) -> np.ndarray | float:
    """What a mask adds to scores."""
    if mask is None:
        return 0.0
    keys = np.arange(total)
    if mask.ndim == 1:
        starts = mask[batch:] if len(mask) > batch else np.zeros(batch)
        kept = (keys < mask[:batch, None]) & (keys >= starts[:, None])
        return np.where(kept, 0, value)[:, None, None]
    return np.where(mask, 0, value)[:, None] if mask.ndim == 3 else np.where(mask, 0, value)[:, None, None]


MASKS = {
    "none": lambda length, total: None,
    "ends": lambda length, total: np.array([2, total], np.int32),
    "ends and beginnings": lambda length, total: np.array([2, total, 0, 1], np.int32),
    "keys": lambda length, total: np.array([[1] * total, [1, 0] * (total // 2) + [1] * (total % 2)], np.int32),
    "queries and keys": lambda length, total: np.tile(np.eye(length, total, dtype=np.int32)[::-1], (2, 1, 1)),
}


@pytest.mark.covering(2)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("past", [None, 4])
@pytest.mark.parametrize("form", ["apart", "keys and values together", "all together", "by head"])
def test_multi_head_attention(form: str, past: int | None, causal: int, mask: str) -> None:
    length, width = 3, HEADS * SIZE
    q, k, v = (random(i, BATCH, length, width) for i in range(3))
    bias, added = random(3, 3 * width), random(4, 1, HEADS, length, length + (past or 0))
    caches = [random(i, BATCH, HEADS, past, SIZE) if past else None for i in (5, 6)]
    biases = np.split(bias, 3)
    queries, keys, values = (by_head(x + own) for x, own in zip((q, k, v), biases))
    apart = [x.reshape(BATCH, length, HEADS, SIZE) for x in (q, k, v)]
    given: list[np.ndarray | None] = [q, k, v]
    if form == "keys and values together":
        given = [q, np.stack(apart[1:], 3), None]
    elif form == "all together":
        given = [np.stack(apart, 3), None, None]
    elif form == "by head":
        keys, values = by_head(k), by_head(v)
        given = [q, keys.copy(), values.copy()]
    if past:
        keys, values = np.concatenate([caches[0], keys], 2), np.concatenate([caches[1], values], 2)
    total = length + (past or 0)
    hidden = MASKS[mask](length, total)
    scores = masked(hidden, total, value=-500.0) + added
    expected = attention(queries, keys, values, scores, (past or 0) if causal else None, 0.5)
    arrays = dict(zip(("q", "k", "v", "bias", "mask", "added", "pk", "pv"), (*given, bias, hidden, added, *caches)))
    words = {"num_heads": HEADS, "unidirectional": causal, "scale": 0.5, "mask_filter_value": -500.0}
    check({"y": expected, "k_out": keys, "v_out": values}, "MultiHeadAttention", arrays, 1e-4, **words)


@pytest.mark.covering(2)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("past", [None, 4])
@pytest.mark.parametrize("sizes", [None, [32, 32, 16]])
def test_attention_with_weights(sizes: list[int] | None, past: int | None, causal: int, mask: str) -> None:
    if past and sizes:
        sizes = [32, 32, 32]
    length, widths = 3, sizes or [32, 32, 32]
    x, weights, bias = random(0, BATCH, length, 6), random(1, 6, sum(widths)), random(2, sum(widths))
    parts = np.split(x @ weights + bias, np.cumsum(widths)[:2], axis=-1)
    q, k, v = (by_head(part, width // HEADS) for part, width in zip(parts, widths))
    cache = random(3, 2, BATCH, HEADS, past, SIZE) if past else None
    if cache is not None:
        k, v = np.concatenate([cache[0], k], 2), np.concatenate([cache[1], v], 2)
    total = length + (past or 0)
    hidden = MASKS[mask](length, total)
    expected = {"y": attention(q, k, v, masked(hidden, total), (past or 0) if causal else None)}
    if k.shape == v.shape:
        expected["present"] = np.stack([k, v])
    arrays = {"x": x, "w": weights, "b": bias, "mask": hidden, "past": cache}
    words = {"num_heads": HEADS, "unidirectional": causal, **({"qkv_hidden_sizes": sizes} if sizes else {})}
    check(expected, "Attention", arrays, 1e-4, **words)


@pytest.mark.covering(2)
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("past", [None, 4])
@pytest.mark.parametrize("zeros", [(None, None), (3, None), (3, 7), (None, 7)])
@pytest.mark.parametrize("has_columns", [False, True])
def test_attention_with_quantized_weights(
    has_columns: bool, zeros: tuple[int | None, int | None], past: int | None, causal: int
) -> None:
    rng, width = np.random.default_rng(0), 3 * HEADS * SIZE
    x, weights = rng.integers(0, 256, (BATCH, 3, 6), np.uint8), rng.integers(-128, 128, (6, width), np.int8)
    scale = np.full(width if has_columns else (), 1 / 256, np.float32)
    bias, step = random(2, width), np.array(1 / 128, np.float32)
    real = (x.astype(float) - (zeros[0] or 0)) @ (weights.astype(float) - (zeros[1] or 0)) * scale * step + bias
    q, k, v = (by_head(part) for part in np.split(real.astype(np.float32), 3, axis=-1))
    cache = random(3, 2, BATCH, HEADS, past, SIZE) if past else None
    if cache is not None:
        k, v = np.concatenate([cache[0], k], 2), np.concatenate([cache[1], v], 2)
    mask = MASKS["keys"](3, k.shape[2])
    expected = {"y": attention(q, k, v, masked(mask, k.shape[2]), (past or 0) if causal else None)}
    at, to = (None if zero is None else np.array(zero, kind) for zero, kind in zip(zeros, (np.uint8, np.int8)))
    names = ("x", "w", "b", "xs", "ws", "mask", "xz", "wz", "past")
    arrays = dict(zip(names, (x, weights, bias, step, scale, mask, at, to, cache)))
    words = {"num_heads": HEADS, "unidirectional": causal}
    check({**expected, "present": np.stack([k, v])}, "QAttention", arrays, 1e-4, **words)


@pytest.mark.parametrize("op_type", ["MultiHeadAttention", "Attention"])
def test_caches_that_are_appended_to(op_type: str) -> None:
    """Step by step, by sessions that copy nothing, as all at once."""
    names = ["past_0", "past_1"] if op_type == "MultiHeadAttention" else ["past_0"]
    cache = random(0, 1, HEADS, 0, SIZE) if len(names) == 2 else random(0, 2, 1, HEADS, 0, SIZE)
    step = [{"x": random(i, 1, 1, HEADS * SIZE)} for i in range(5)]
    if op_type == "Attention":
        arrays = {**step[0], "w": random(9, 32, 96), "b": None, "mask": None, "past_0": cache}
    else:
        arrays = {
            **step[0],
            "k": random(8, 1, 1, 32),
            "v": random(9, 1, 1, 32),
            **dict.fromkeys(("b", "m", "a")),
            **dict.fromkeys(names, cache),
        }
        step = [{"x": s["x"], "k": s["x"] + 1, "v": s["x"] + 2} for s in step]
    outputs = " ".join(["y", *(name.replace("past", "present") for name in names)])
    model, _ = contrib(
        op_type, arrays, outputs, constants="w" if op_type == "Attention" else "", num_heads=HEADS, unidirectional=1
    )
    compiled = irc.compile(model)
    session = irc.Session(compiled, capacity=16)
    found: list[np.ndarray] = []
    for number, feeds in enumerate(step):
        found.append(session.run({**feeds, **(dict.fromkeys(names, cache) if not number else {})}, outputs=["y"])["y"])
        assert not number or not session.counters.copied_bytes
    whole = {name: np.concatenate([feeds[name] for feeds in step], 1) for name in step[0]}
    at_once = compiled.run({**whole, **dict.fromkeys(names, cache)})["y"]
    np.testing.assert_allclose(np.concatenate(found, 1), at_once, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("code", "words", "op_type", "names", "attributes"),
    [
        ("IRC127", "num_heads is 0", "MultiHeadAttention", "q", {"num_heads": 0}),
        ("IRC127", "past_key and past_value", "MultiHeadAttention", "q q q _ _ _ q", {}),
        ("IRC127", "input key is absent", "MultiHeadAttention", "q _ q", {}),
        ("IRC123", "input past_sequence_length", "MultiHeadAttention", "q q q _ _ _ q q q", {}),
        ("IRC123", "input cache_indirection", "MultiHeadAttention", "q q q _ _ _ q q _ q", {}),
        ("IRC123", "do_rotary is 1", "Attention", "q q", {"do_rotary": 1}),
        ("IRC123", "past_present_share_buffer is 1", "Attention", "q q", {"past_present_share_buffer": 1}),
        ("IRC127", "qkv_hidden_sizes is [4, 8, 4]", "Attention", "q q", {"qkv_hidden_sizes": [4, 8, 4]}),
        ("IRC123", "input past_sequence_length", "Attention", "q q _ _ _ _ q", {}),
    ],
)
def test_what_attention_does_not_take(
    code: str, words: str, op_type: str, names: str, attributes: dict[str, Any]
) -> None:
    model, _ = contrib(op_type, {"q": random(0, 1, 2, 8)}, "y", **{"num_heads": 2, **attributes})
    model.graph.node[0].input[:] = ["" if name == "_" else name for name in names.split()]
    refused(code, model, words)


def test_masks_for_each_head() -> None:
    x = random(0, 1, 2, 8)
    arrays = {"x": x, "w": random(1, 8, 24), "b": None, "mask": np.ones((1, 1, 2, 2), np.int32)}
    refused("IRC123", contrib("Attention", arrays, "y", num_heads=2)[0], "a mask_index of 4 dimensions")


def attribute(name: str, value: Any) -> Any:
    def change(node: onnx.NodeProto) -> None:
        node.attribute.append(helper.make_attribute(name, value))

    return change


def inputs(**given: str) -> Any:
    def change(node: onnx.NodeProto) -> None:
        node.input.extend([""] * (16 - len(node.input)))
        for place, name in given.items():
            node.input[int(place[1:])] = name

    return change


@pytest.mark.parametrize(
    ("code", "words", "change"),
    [
        ("IRC123", "qk_output is 1", attribute("qk_output", 1)),
        ("IRC123", "kv_cache_bit_width is 8", attribute("kv_cache_bit_width", 8)),
        ("IRC123", "sliding_window_cache is 1", attribute("sliding_window_cache", 1)),
        ("IRC123", "k_quant_type is 'PER_TENSOR'", attribute("k_quant_type", "PER_TENSOR")),
        ("IRC123", "output output_qk", lambda node: node.output.append("qk")),
        ("IRC123", "input k_scale", inputs(_12="cos")),
        ("IRC127", "causal is 2", attribute("causal", 2)),
        ("IRC127", "local_window_size 0", attribute("local_window_size", 0)),
        ("IRC127", "past_key and past_value", inputs(_3="")),
        ("IRC127", "cos_cache and sin_cache", inputs(_8="")),
        ("IRC127", "do_rotary needs", inputs(_7="", _8="")),
        ("IRC127", "q_norm_weight and k_norm_weight", inputs(_14="cos")),
        ("IRC127", "needs attribute 'num_heads'", lambda node: node.attribute.pop(2)),
        ("IRC127", "4 heads (num_heads) cannot share 3", lambda node: setattr(node.attribute[1], "i", 3)),
        ("IRC127", "0 heads (num_heads)", lambda node: setattr(node.attribute[2], "i", 0)),
        ("IRC127", "is FLOAT, but must be INT", attribute("smooth_softmax", 1.0)),
        ("IRC127", "sizes that are too large", lambda node: [setattr(a, "i", 1 << 62) for a in node.attribute[1:3]]),
    ],
)
def test_bad_nodes(code: str, words: str, change: Any) -> None:
    model = decoder(None)
    change(model.graph.node[-1])
    refused(code, model, words)


@pytest.mark.parametrize(
    ("code", "words", "attributes"),
    [
        ("IRC123", "scale is 2.0", {"scale": 2.0}),
        ("IRC127", "'num_heads' must be given", {"rotary_embedding_dim": 4}),
        ("IRC127", "rotary_embedding_dim is 3", {"rotary_embedding_dim": 3, "num_heads": 2}),
    ],
)
def test_bad_rotations(code: str, words: str, attributes: dict[str, Any]) -> None:
    x = random(0, 1, 2, 8)
    refused(
        code, contrib("RotaryEmbedding", {"x": x, "at": np.array([0]), "cos": x, "sin": x}, "y", **attributes)[0], words
    )


def test_layers_alike_share_a_body() -> None:
    model = decoder(None)
    model.graph.node.append(model.graph.node[-1])
    model.graph.node[-1].output[:] = ["z", "k", "v"]
    assert len(import_model(model).graphs) == 2
