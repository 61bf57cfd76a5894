"""``python -m benchmarks.runtime decoder``: a small language model writes 512 tokens, a larger one 64.

Two layers, hidden size 256, 8 heads, a vocabulary of 1,000, seeded weights: its
operators take microseconds, so this measures what comes with each of them. The
larger one (`LARGER`) reads 200 MB of weights a token, as models in use do. As
exporters merge them: one model whose If takes the branch for the first step (a
prompt, no caches) or the one for all others (a token, and the caches, which the
branch captures). `irc.Session` keeps the caches; others are given theirs back as
arrays. All write the same tokens. What NumPy takes, without an interpreter, is
measured too: the same decoder written by hand.

Aims: the bytes of caches that irc copies a token do not depend on how many
tokens there are, but for the doublings; all tokens take at most as long as with
ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import irc
from benchmarks import peers
from benchmarks.race import race
from benchmarks.results import Row, against_peers
from benchmarks.runtime.by_hand import Decoder


class Size(NamedTuple):
    """How large a decoder is; names of its caches."""

    layers: int
    hidden: int
    heads: int
    vocabulary: int

    @property
    def head(self) -> int:
        return self.hidden // self.heads

    @property
    def caches(self) -> list[str]:
        return [f"{layer}.{what}" for layer in range(self.layers) for what in ("key", "value")]


SMALL = Size(layers=2, hidden=256, heads=8, vocabulary=1000)
LARGER = Size(layers=6, hidden=768, heads=12, vocabulary=8000)
TOKENS = 512
TOKENS_OF_LARGER = 64
PROMPT = 16
TURNS = 3

Array = np.ndarray[Any, Any]


class _Branch:
    """The nodes of one branch; names of its values get a prefix of their own."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.nodes: list[onnx.NodeProto] = []

    def op(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        output = self.prefix + (name or f"{kind}_{len(self.nodes)}")
        self.nodes.append(helper.make_node(kind, list(inputs), [output], output, **attributes))
        return output


class _Weights:
    """Seeded weights by name, made when they are first asked for; both branches share them."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.tensors: dict[str, onnx.TensorProto] = {}
        self._random = np.random.default_rng(0)

    def __call__(self, name: str, *shape: int, scale: float = 0.0) -> str:
        if name not in self.tensors:
            values = self._random.standard_normal(shape, np.float32) * np.float32(scale or shape[0] ** -0.5)
            self.tensors[name] = numpy_helper.from_array(values, name)
        return name

    def constant(self, name: str, value: Any) -> str:
        self.tensors.setdefault(name, numpy_helper.from_array(np.asarray(value), name))
        return name


def _norm(b: _Branch, w: _Weights, x: str, name: str) -> str:
    scale, bias = (
        w.constant(f"{name}.{what}", np.full(w.size.hidden, v, np.float32)) for what, v in (("scale", 1), ("bias", 0))
    )
    return b.op("LayerNormalization", x, scale, bias, axis=-1)


def _attention(b: _Branch, w: _Weights, x: str, layer: int, mask: str) -> str:
    hidden, head = w.size.hidden, w.size.head
    split = w.constant("split", np.array([0, 0, w.size.heads, head]))

    def heads(what: str) -> str:
        flat = b.op("MatMul", x, w(f"{layer}.{what}", hidden, hidden))
        return b.op("Transpose", b.op("Reshape", flat, split), perm=[0, 2, 1, 3])

    q, k, v = heads("q"), heads("k"), heads("v")
    if b.prefix == "with.":
        k = b.op("Concat", f"past_key_values.{layer}.key", k, axis=2, name=f"{layer}.key")
        v = b.op("Concat", f"past_key_values.{layer}.value", v, axis=2, name=f"{layer}.value")
    else:
        k, v = (b.op("Identity", x, name=f"{layer}.{what}") for x, what in ((k, "key"), (v, "value")))
    scores = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b.op("Mul", scores, w.constant("scale", np.float32(head**-0.5)))
    if mask:
        scores = b.op("Add", scores, mask)
    mixed = b.op("Transpose", b.op("MatMul", b.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    joined = b.op("Reshape", mixed, w.constant("join", np.array([0, 0, hidden])))
    return b.op("MatMul", joined, w(f"{layer}.out", hidden, hidden))


def _branch(w: _Weights, prefix: str) -> onnx.GraphProto:
    b, size = _Branch(prefix), w.size
    hidden, vocabulary = size.hidden, size.vocabulary
    x = b.op("Gather", w("tokens", vocabulary, hidden, scale=1), "input_ids")
    x = b.op("Add", x, b.op("Gather", w("positions", 2048, hidden, scale=0.5), "position_ids"))
    mask = ""
    if prefix == "no.":  # a token sees those before it
        length = b.op("Shape", "input_ids", start=1, end=2)
        lowest = w.constant("lowest", np.array([-1e9], np.float32))
        square = b.op("Expand", lowest, b.op("Concat", length, length, axis=0))
        mask = b.op("Trilu", square, w.constant("above", np.int64(1)), upper=1)
    for layer in range(size.layers):
        x = b.op("Add", x, _attention(b, w, _norm(b, w, x, f"{layer}.norm"), layer, mask))
        inner = b.op("Gelu", b.op("MatMul", _norm(b, w, x, f"{layer}.norm2"), w(f"{layer}.up", hidden, 4 * hidden)))
        x = b.op("Add", x, b.op("MatMul", inner, w(f"{layer}.down", 4 * hidden, hidden)))
    b.op("MatMul", _norm(b, w, x, "norm"), w("head", hidden, vocabulary), name="logits")
    outputs = [helper.make_tensor_value_info(prefix + n, TensorProto.FLOAT, None) for n in ("logits", *size.caches)]
    return helper.make_graph(b.nodes, prefix.rstrip("."), [], outputs)


def model(size: Size = SMALL) -> onnx.ModelProto:
    """``input_ids``, ``position_ids``, ``use_cache``, ``past_key_values.*`` to ``logits``, ``present.*``."""
    w, caches = _Weights(size), size.caches
    branches = {"then_branch": _branch(w, "with."), "else_branch": _branch(w, "no.")}
    node = helper.make_node("If", ["use_cache"], ["logits", *(f"present.{c}" for c in caches)], "merged", **branches)
    info = helper.make_tensor_value_info
    inputs = [info(name, TensorProto.INT64, [1, "sequence"]) for name in ("input_ids", "position_ids")]
    inputs.append(info("use_cache", TensorProto.BOOL, []))
    inputs += [info(f"past_key_values.{c}", TensorProto.FLOAT, [1, size.heads, "past", size.head]) for c in caches]
    outputs = [info("logits", TensorProto.FLOAT, [1, "sequence", size.vocabulary])]
    outputs += [info(f"present.{c}", TensorProto.FLOAT, [1, size.heads, "total", size.head]) for c in caches]
    graph = helper.make_graph([node], "decoder", inputs, outputs, list(w.tensors.values()))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


Step = Callable[[dict[str, Any]], Array]
"""From ids and positions to logits; the step before's caches are known."""


def write(step: Step, tokens: int = TOKENS, prompt: int = PROMPT) -> list[int]:
    """The tokens that a model likes best, one after the other."""
    ids = (np.arange(prompt) * 37 % SMALL.vocabulary)[None]
    position = 0
    found: list[int] = []
    for _ in range(tokens):
        positions = np.arange(position, position + ids.shape[1])[None]
        logits = step({"input_ids": ids, "position_ids": positions, "use_cache": np.array(position > 0)})
        position += ids.shape[1]
        found.append(int(logits[0, -1].argmax()))
        ids = np.array([[found[-1]]])
    return found


def with_session(compiled: irc.CompiledModel, copied: list[int] | None = None) -> Step:
    """Steps of a new session; the bytes that each copies are noted in ``copied``."""
    session = irc.Session(compiled)

    def step(feeds: dict[str, Any]) -> Array:
        logits = session.run(feeds, outputs=["logits"])["logits"]
        if copied is not None:
            copied.append(session.counters.copied_bytes)
        return logits

    return step


def _empty(size: Size) -> dict[str, Array]:
    """Caches without positions."""
    return {f"past_key_values.{c}": np.empty((1, size.heads, 0, size.head), np.float32) for c in size.caches}


def with_arrays(run: Callable[[dict[str, Any]], Any], size: Size) -> Step:
    """Steps of ``run``, which is given the caches as arrays and gives logits and longer caches."""
    caches = _empty(size)

    def step(feeds: dict[str, Any]) -> Array:
        logits, *presents = run({**feeds, **caches})
        caches.update(zip(caches, presents))
        return logits

    return step


def by_hand(proto: onnx.ModelProto, compiled: irc.CompiledModel, size: Size, tokens: int = TOKENS) -> Step:
    """Steps of the decoder written for NumPy."""

    def prompt(feeds: dict[str, Any]) -> list[Array]:
        return [*compiled.run({**feeds, **_empty(size)}).values()]

    return Decoder(proto, prompt, size.layers, size.heads, PROMPT + tokens)


def measure(tokens: int = TOKENS, tokens_of_larger: int = TOKENS_OF_LARGER, turns: int = TURNS) -> list[Row]:
    """Milliseconds that ``tokens`` take each contender; of irc's steps, how many copy caches, and the bytes in all.

    Of both decoders.
    """
    return _measure("decoder", SMALL, tokens, turns) + _measure("larger decoder", LARGER, tokens_of_larger, turns)


def _measure(subject: str, size: Size, tokens: int, turns: int) -> list[Row]:
    proto = model(size)
    compiled = irc.compile(proto)
    contenders: dict[str, Callable[[Any], list[int]]] = {
        "irc": lambda _: write(with_session(compiled), tokens),
        "irc, caches as arrays": lambda _: write(with_arrays(lambda f: [*compiled.run(f).values()], size), tokens),
        "numpy, by hand": lambda _: write(by_hand(proto, compiled, size, tokens), tokens),
    }
    for name, run in peers.runners(proto, without="onnx.reference").items():  # which takes minutes
        contenders[name] = lambda _, run=run: write(with_arrays(run, size), tokens)
    samples, results = race(contenders, lambda _: None, turns, warm=True)
    for name, found in results.items():
        assert found == results["irc"], f"{name} writes something else"
    copied: list[int] = []
    write(with_session(compiled, copied), tokens)
    return [
        *against_peers(subject, samples, f"ms/{tokens} tokens", scale=1e3),
        Row(f"{subject}/steps that copy caches", sum(n > 0 for n in copied), f"steps/{tokens}"),
        Row(f"{subject}/copied in all", sum(copied), "bytes"),
    ]
