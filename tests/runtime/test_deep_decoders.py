"""Decoders of many layers as exporters write them: what holds in the first layer is found in all of them."""

from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import irc
from irc.frontend.onnx import import_model
from irc.ir.types import DType
from irc.passes import PassManager
from irc.passes.shapes import Inference
from irc.tools.check.peers import onnxruntime_session
from tests.effort import Spy

HEADS, SHARED, SIZE, WORDS = 4, 2, 4, 11
WIDTH, WIDER = HEADS * SIZE, 24


class Exporter:
    """Writes operators one by one, as a tracer does: it knows no shape, and asks for sizes where it needs them."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(0)

    def op(self, kind: str, *inputs: str, name: str = "", **attributes: object) -> str:
        name = name or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, value: object, dtype: type = np.int64) -> str:
        self.constants.append(numpy_helper.from_array(np.array(value, dtype), f"c_{len(self.constants)}"))
        return self.constants[-1].name

    def weight(self, *shape: int) -> str:
        return self.constant(self.random.standard_normal(shape) * 0.3, np.float32)

    def size(self, x: str, axis: int) -> str:
        return self.op("Gather", self.op("Shape", x), self.constant(axis))

    def shape(self, *sizes: str | int) -> str:
        """A shape of scalars and numbers."""
        zero = self.constant([0])
        parts = [self.constant([s]) if isinstance(s, int) else self.op("Unsqueeze", s, zero) for s in sizes]
        return self.op("Concat", *parts, axis=0)

    def expand(self, x: str, *sizes: str | int) -> str:
        """Where a size may be -1, which ``Expand`` does not know."""
        shape, rank = self.shape(*sizes), self.constant([len(sizes)])
        ones = self.op("ConstantOfShape", rank, value=helper.make_tensor("one", TensorProto.INT64, [1], [1]))
        stays = self.op("Equal", shape, self.op("Mul", ones, self.constant(-1)))
        return self.op("Expand", x, self.op("Where", stays, ones, shape))

    def mask(self, words: str, window: int | None) -> str:
        """What each word may look at, of each of the batch; the numbers of the batch pass through a flat array."""
        old, new, batch = self.size("past.0", 2), self.size(words, 1), self.size(words, 0)
        at = self.op("Range", old, self.op("Add", old, new), self.constant(1))
        total = self.op("Add", old, self.size(at, 0))
        seen = self.op("Range", self.constant(0), total, self.constant(1))
        row = self.op("Unsqueeze", at, self.constant([0, 1, 3]))
        column = self.op("Unsqueeze", seen, self.constant([0, 1, 2]))
        may = self.op("LessOrEqual", column, row)
        if window is not None:
            may = self.op("And", may, self.op("Greater", column, self.op("Sub", row, self.constant(window))))
        rows = self.op("Range", self.constant(0), batch, self.constant(1))
        starts = self.op("Mul", self.op("Unsqueeze", rows, self.constant([1, 2, 3])), self.size("attention", 1))
        index = self.op("Add", column, starts)
        flat = self.op("Flatten", self.op("Cast", "attention", to=TensorProto.BOOL), axis=2)
        found = self.op("Reshape", self.op("Gather", flat, index), self.constant([-1]))
        may = self.op("And", may, self.op("Reshape", found, self.op("Shape", index)))
        return self.expand(may, batch, -1, self.size(at, 0), total)

    def norm(self, x: str) -> str:
        mean = self.op("ReduceMean", self.op("Pow", x, self.constant(2, np.float32)), self.constant([-1]))
        root = self.op("Sqrt", self.op("Add", mean, self.constant(1e-5, np.float32)))
        return self.op("Mul", self.op("Mul", x, self.op("Div", self.constant(1, np.float32), root)), self.weight(WIDTH))

    def heads(self, x: str, count: int) -> str:
        shape = self.shape(self.size(x, 0), self.size(x, 1), -1, SIZE)
        parts = self.op("Reshape", self.op("MatMul", x, self.weight(WIDTH, count * SIZE)), shape)
        return self.op("Transpose", parts, perm=[0, 2, 1, 3])

    def turned(self, x: str, cos: str, sin: str) -> str:
        one = self.constant([1])
        cos, sin = self.op("Unsqueeze", cos, one), self.op("Unsqueeze", sin, one)
        half = self.op("Div", self.size(x, 3), self.constant(2))
        cut, three = self.op("Unsqueeze", half, self.constant([0])), self.constant([3])
        low = self.op("Slice", x, self.constant([0]), cut, three)
        high = self.op("Slice", x, cut, self.constant([2**63 - 1]), three)
        other = self.op("Concat", self.op("Neg", high), low, axis=-1)
        return self.op("Add", self.op("Mul", x, cos), self.op("Mul", other, sin))

    def repeated(self, x: str) -> str:
        batch, heads, rows, size = (self.size(x, axis) for axis in range(4))
        more = self.expand(self.op("Unsqueeze", x, self.constant([2])), batch, heads, HEADS // SHARED, rows, size)
        all_heads = self.op("Mul", heads, self.constant(HEADS // SHARED))
        return self.op("Reshape", more, self.shape(batch, all_heads, rows, size))

    def layer(self, x: str, number: int, mask: str, cos: str, sin: str) -> str:
        normed = self.norm(x)
        q = self.turned(self.heads(normed, HEADS), cos, sin)
        k, v = self.turned(self.heads(normed, SHARED), cos, sin), self.heads(normed, SHARED)
        k = self.repeated(self.op("Concat", f"past.{2 * number}", k, name=f"present.{2 * number}", axis=-2))
        v = self.repeated(self.op("Concat", f"past.{2 * number + 1}", v, name=f"present.{2 * number + 1}", axis=-2))
        scale = self.constant(SIZE**-0.25, np.float32)
        turned = self.op("Mul", self.op("Transpose", k, perm=[0, 1, 3, 2]), scale)
        seen = self.op(
            "Slice",
            mask,
            self.constant([0]),
            self.op("Unsqueeze", self.size(k, 2), self.constant([0])),
            self.constant([3]),
        )
        added = self.op("Where", seen, self.constant([0], np.float32), self.constant([-np.inf], np.float32))
        weights = self.op(
            "Softmax", self.op("Add", self.op("MatMul", self.op("Mul", q, scale), turned), added), axis=-1
        )
        weights = self.op("Where", self.op("IsNaN", weights), self.constant([0], np.float32), weights)
        joined = self.op("Transpose", self.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        shape = self.shape(self.size(normed, 0), self.size(normed, 1), -1)
        x = self.op("Add", x, self.op("MatMul", self.op("Reshape", joined, shape), self.weight(WIDTH, WIDTH)))
        normed = self.norm(x)
        gate = self.op("MatMul", normed, self.weight(WIDTH, WIDER))
        gated = self.op("Mul", gate, self.op("Sigmoid", gate))
        inner = self.op("Mul", gated, self.op("MatMul", normed, self.weight(WIDTH, WIDER)))
        return self.op("Add", x, self.op("MatMul", inner, self.weight(WIDER, WIDTH)))


def decoder(layers: int, window: int | None = None) -> onnx.ModelProto:
    e = Exporter()
    x = e.op("Gather", e.weight(WORDS, WIDTH), "words")
    mask = e.mask(x, window)
    angle = e.op("Mul", e.op("Cast", e.op("Unsqueeze", "at", e.constant([2])), to=TensorProto.FLOAT), e.weight(SIZE))
    cos, sin = e.op("Cos", angle), e.op("Sin", angle)
    for number in range(layers):
        x = e.layer(x, number, mask, cos, sin)
    e.op("MatMul", e.norm(x), e.weight(WIDTH, WORDS), name="logits")
    info, caches = helper.make_tensor_value_info, range(2 * layers)
    inputs = [info(name, TensorProto.INT64, ["batch", "new"]) for name in ("words", "at")]
    inputs.append(info("attention", TensorProto.INT64, ["batch", "past + new"]))
    inputs += [info(f"past.{i}", TensorProto.FLOAT, ["batch", SHARED, "past", SIZE]) for i in caches]
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("logits", *(f"present.{i}" for i in caches))]
    graph = helper.make_graph(e.nodes, "decoder", inputs, outputs, e.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_all_layers_are_rewritten_in_linear_work(spy: Spy) -> None:
    looks = spy(Inference, "infer_node")
    counts: dict[int, int] = {}
    for layers in (2, 4, 8):
        looks.reset_mock()
        stats = PassManager("canonicalize").run(import_model(decoder(layers))).stats
        assert stats["canonicalize.attention_of_shared_heads"] == layers
        counts[layers] = looks.call_count
    assert counts[8] - counts[4] == 2 * (counts[4] - counts[2])


def test_layers_share_their_shape_arithmetic() -> None:
    def sizes_worked_out(layers: int) -> int:
        graph = irc.compile(decoder(layers)).graph
        made = [value for node in graph.nodes if node.kind != "prim::Constant" for value in node.outputs]
        return sum(value.type.dtype is DType.INT64 and (value.type.rank or 0) < 2 for value in made)

    assert sizes_worked_out(2) == sizes_worked_out(6)


def steps(batch: int, padding: int) -> Iterator[dict[str, np.ndarray]]:
    """What is given in each of some steps; all but the first of the batch begin later."""
    random, past = np.random.default_rng(1), 0
    for new in (6, 1, 1, 2, 1):
        attention = np.ones((batch, past + new), np.int64)
        attention[1:, :padding] = 0
        at = np.clip(attention.cumsum(-1) - 1, 0, None)[:, past:]
        yield {"words": random.integers(0, WORDS, (batch, new)), "at": at, "attention": attention}
        past += new


@pytest.mark.parametrize(("batch", "padding"), [(1, 0), (2, 3)])
@pytest.mark.parametrize("window", [None, 3])
def test_steps_are_as_elsewhere(batch: int, padding: int, window: int | None) -> None:
    model = decoder(3, window)
    compiled, other = irc.compile(model), onnxruntime_session(model)
    assert compiled.report.stats["canonicalize.attention_of_shared_heads"] == 3
    session = irc.Session(compiled, capacity=16)
    names = [output.name for output in compiled.outputs]
    caches = {f"past.{i}": np.zeros((batch, SHARED, 0, SIZE), np.float32) for i in range(6)}
    for number, given in enumerate(steps(batch, padding)):
        expected = dict(zip(names, other.run(None, {**given, **caches}), strict=True))
        alone = compiled.run({**given, **caches})
        stepped = session.run({**given, **caches} if number == 0 else given)
        for name, array in expected.items():
            np.testing.assert_allclose(alone[name], array, rtol=1e-4, atol=1e-5, err_msg=name)
            np.testing.assert_allclose(stepped[name], array, rtol=1e-4, atol=1e-5, err_msg=name)
        caches = {f"past.{i}": expected[f"present.{i}"] for i in range(6)}
