"""Attention written as several operators becomes one, gives what they do, and is decomposed again in ONNX."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import irc
from irc.errors import Error
from irc.ir import parse_graph
from tests.effort import examples
from tests.elsewhere import run_onnxruntime
from tests.graphs import ir

KIND = "irc::attention"
SIZES = {"b": 2, "l": 5, "s": 7}


def kinds(model: irc.CompiledModel) -> list[str]:
    return [node.kind for node in model.graph.walk()]


class Exporter:
    """Appends nodes between ``q``, ``k`` and ``v``, (b, 4, l, 8), (b, shared, s, 8), (b, shared, s, 3), and ``y``."""

    def __init__(self, opset: int = 18, dtype: Any = np.float32, shared: int = 4) -> None:
        self.opset, self.dtype, self.shared = opset, np.dtype(dtype), shared
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: dict[str, tuple[Any, list[Any]]] = {
            "q": (dtype, ["b", 4, "l", 8]),
            "k": (dtype, ["b", shared, "s", 8]),
            "v": (dtype, ["b", shared, "s", 3]),
        }

    def op(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        name = name or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, value: Any, dtype: Any = None) -> str:
        array = np.array(value, self.dtype if dtype is None else dtype)
        self.constants.append(numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def given(self, name: str, shape: list[Any], dtype: Any = None) -> str:
        self.inputs[name] = (self.dtype if dtype is None else dtype, shape)
        return name

    def repeated(self, x: str, width: int) -> str:
        if self.shared == 4:
            return x
        long = self.op("Unsqueeze", x, self.constant([2], np.int64))
        wide = self.constant([1, 1, 4 // self.shared, 1, 1], np.int64)
        return self.op("Reshape", self.op("Expand", long, wide), self.constant([0, 4, -1, width], np.int64))

    def scores(self) -> str:
        return self.op("MatMul", "q", self.op("Transpose", self.repeated("k", 8), perm=[0, 1, 3, 2]))

    def finish(self, scores: str, softmax: str = "Softmax") -> onnx.ModelProto:
        weights = self.op(softmax, scores, axis=-1 if self.opset > 10 else 3)
        return self.model(weights)

    def model(self, weights: str) -> onnx.ModelProto:
        self.op("MatMul", weights, self.repeated("v", 3), name="y")
        element = helper.np_dtype_to_tensor_dtype
        inputs = [helper.make_tensor_value_info(n, element(np.dtype(t)), s) for n, (t, s) in self.inputs.items()]
        result = helper.make_tensor_value_info("y", element(self.dtype), ["b", 4, "l", 3])
        graph = helper.make_graph(self.nodes, "attention", inputs, [result], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)

    def feeds(self) -> dict[str, np.ndarray[Any, Any]]:
        rng = np.random.default_rng(0)
        found = {}
        for name, (dtype, shape) in self.inputs.items():
            numbers = rng.standard_normal([SIZES.get(n, n) if isinstance(n, str) else n for n in shape])
            found[name] = numbers > -0.7 if dtype is bool else numbers.astype(dtype)
        return found


def same(found: Any, wanted: Any, bound: float = 2e-5) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), bound, bound)


def check(proto: onnx.ModelProto, feeds: dict[str, Any], path: Path, bound: float = 2e-5) -> irc.CompiledModel:
    """As several operators, as one, saved, exported and run elsewhere, and imported again."""
    wanted = irc.compile(proto, "none").run(feeds)["y"]
    model = irc.compile(proto)
    assert kinds(model).count(KIND) == 1 and "onnx::Softmax" not in kinds(model)
    same(model.run(feeds)["y"], wanted, bound)
    model.save(path / "m.irc")
    same(irc.load(path / "m.irc").run(feeds)["y"], wanted, bound)
    irc.export(model, path / "m.onnx")
    onnx.checker.check_model(onnx.load(path / "m.onnx"), full_check=True)
    same(run_onnxruntime(path / "m.onnx", feeds)[0], wanted, bound)
    same(irc.compile(path / "m.onnx").run(feeds)["y"], wanted, bound)
    return model


def plain(e: Exporter) -> str:
    return e.scores()


def scaled(e: Exporter) -> str:
    return e.op("Div", e.op("Mul", e.constant(0.25), e.scores()), e.constant([0.5]))


def enlarged(e: Exporter) -> str:
    return e.op("Mul", e.scores(), e.constant([[3.0]]))


def capped(e: Exporter) -> str:
    cap = e.constant(1.5)
    return e.op("Mul", e.op("Tanh", e.op("Div", e.scores(), cap)), cap)


def added(e: Exporter) -> str:
    first = e.op("Add", e.given("m", ["b", 1, 1, "s"]), e.scores())
    return e.op("Add", first, e.given("n", [4, "l", 1]))


def chosen(e: Exporter) -> str:
    scores = e.op("Add", e.scores(), e.given("m", ["s"]))
    return e.op("Where", e.given("c", ["b", 1, "l", "s"], bool), scores, e.constant(-6e4))


def excluded(e: Exporter) -> str:
    return e.op("Where", e.given("c", ["l", "s"], bool), e.constant(-np.inf), e.scores())


FORMS = [plain, scaled, enlarged, capped, added, chosen, excluded]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("shared", [4, 2, 1])
def test_forms(form: Any, shared: int, tmp_path: Path) -> None:
    e = Exporter(shared=shared)
    check(e.finish(form(e)), e.feeds(), tmp_path)


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
@pytest.mark.parametrize("form", [scaled, added, chosen], ids=lambda form: form.__name__)
def test_element_types(form: Any, dtype: Any, tmp_path: Path) -> None:
    e = Exporter(dtype=dtype)
    check(e.finish(form(e)), e.feeds(), tmp_path, 1e-2 if dtype is np.float16 else 1e-9)


def test_a_softmax_in_single_precision_of_halves(tmp_path: Path) -> None:
    e = Exporter(dtype=np.float16)
    weights = e.op("Softmax", e.op("Cast", scaled(e), to=1), axis=-1)
    check(e.model(e.op("Cast", weights, to=10)), e.feeds(), tmp_path, 1e-2)


def test_masked_rows_are_zeros_where_they_are_spelt_so(tmp_path: Path) -> None:
    e = Exporter()
    weights = e.op("Softmax", excluded(e), axis=-1)
    proto = e.model(e.op("Where", e.op("IsNaN", weights), e.constant(0), weights))
    feeds = e.feeds()
    feeds["c"][3] = True
    model = check(proto, feeds, tmp_path)
    assert not model.run(feeds)["y"][:, :, 3].any()


@examples(60)
@given(st.data())
def test_any_operators_between_the_products(data: st.DataObject) -> None:
    """Whether it is attention or not, results are those of the operators."""
    draw = data.draw
    e = Exporter(shared=draw(st.sampled_from([4, 2])))
    x = e.scores()
    masks = [["s"], ["l", "s"], ["l", 1], ["b", 1, 1, "s"], [1, 4, 1, 1], []]
    for i in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(["Add", "Mul", "Div", "Where", "Tanh", "Softmax", "Cap", "Sub", "twice"]))
        number = e.constant(draw(st.sampled_from([0.5, -2.0, [1.5], [[0.25]]])))
        if kind == "Add" or kind == "Sub":
            operands = [x, e.given(f"m{i}", draw(st.sampled_from(masks)))]
            x = e.op(kind, *operands[:: draw(st.sampled_from([1, -1]))])
        elif kind == "Where":
            operands = [x, number][:: draw(st.sampled_from([1, -1]))]
            x = e.op(kind, e.given(f"m{i}", draw(st.sampled_from(masks)), bool), *operands)
        elif kind == "Cap":
            x = e.op("Mul", number, e.op("Tanh", e.op("Div", x, number)))
        elif kind == "twice":
            x = e.op("Add", x, x)
        elif kind in ("Tanh", "Softmax"):
            x = e.op(kind, x)
        else:
            x = e.op(kind, *[x, number][:: draw(st.sampled_from([1, -1]))])
    proto, feeds = e.finish(x), e.feeds()
    same(irc.compile(proto).run(feeds)["y"], irc.compile(proto, "none").run(feeds)["y"], 1e-4)


def test_large_numbers_do_not_overflow_where_a_factor_is_moved(tmp_path: Path) -> None:
    """Neither queries by a factor of more than 1, nor scores by one that comes later."""
    for factor, of_queries, of_keys in ((8.0, 1e38, 1e-38), (2.0**-20, 1e30, 1e8), (0.5, 1e38, 1e-38)):
        for where in ("query", "key", "scores"):
            e = Exporter()
            q, k = "q", e.op("Transpose", "k", perm=[0, 1, 3, 2])
            c = e.constant(factor)
            q = e.op("Mul", q, c) if where == "query" and factor < 1 else q
            k = e.op("Mul", k, c) if where == "key" else k
            scores = e.op("MatMul", q, k)
            scores = e.op("Mul", scores, c) if where == "scores" else scores
            proto, feeds = e.finish(scores), e.feeds()
            feeds["q"], feeds["k"] = np.sign(feeds["q"]) * np.float32(of_queries), feeds["k"] * np.float32(of_keys)
            wanted = irc.compile(proto, "none").run(feeds)["y"]
            if np.isfinite(wanted).all():
                same(irc.compile(proto).run(feeds)["y"], wanted, 1e-4)


OPERATOR = """graph(%q : Float(b, 4, l, 8),
  %k : Float(b, 2, s, 8), %v : Float(b, 2, s, 3), %m : Float(b, 1, l, s), %c : Bool(l, s), %n : Float(4)):
  %none : NoneType = prim::Constant()
  %y : Float(b, 4, l, 3) = irc::attention[ATTRIBUTES](INPUTS)
  return (%y)"""


@pytest.mark.covering(1)
@pytest.mark.parametrize(
    "inputs",
    [
        "%q, %k, %v",
        "%q, %k, %v, %m",
        "%q, %k, %v, %none, %c",
        "%q, %k, %v, %m, %c",
        "%q, %k, %v, %none, %none, %n",
        "%q, %k, %v, %none, %c, %n",
    ],
)
@pytest.mark.parametrize(
    "attributes",
    [
        "grouped=1",
        "scale=0.3, grouped=1",
        'softcap=2., causal="first", zero_rows="masked", grouped=1',
        'causal="last", zero_rows="masked", grouped=1',
        'fill=-5., zero_rows="nan", grouped=1',
    ],
)
@pytest.mark.parametrize("rank", ["known", "unknown"])
def test_the_operator_is_spelt_out_in_all_its_forms(inputs: str, attributes: str, rank: str, tmp_path: Path) -> None:
    text = OPERATOR.replace("ATTRIBUTES", attributes).replace("INPUTS", inputs)
    if rank == "unknown":
        for shape in ("(b, 4, l, 8)", "(b, 2, s, 8)", "(b, 2, s, 3)", "(b, 4, l, 3)"):
            text = text.replace(f"Float{shape}", "Float")
    e = Exporter(shared=2)
    e.given("m", ["b", 1, "l", "s"]), e.given("c", ["l", "s"], bool), e.given("n", [4])
    feeds = e.feeds()
    feeds["m"][1, 0, 2] = -np.inf
    feeds["c"][3] = False
    model = irc.compile(parse_graph(text), "none")
    for keys in (7, 3):
        given_ = {
            **feeds,
            **{n: feeds[n][:, :, :keys] for n in "kv"},
            "m": feeds["m"][..., :keys],
            "c": feeds["c"][:, :keys],
        }
        wanted = model.run(given_)["y"]
        irc.export(model, tmp_path / "m.onnx")
        used = {name: given_[name] for name in ("q", "k", "v", "m", "c", "n")}
        found = run_onnxruntime(tmp_path / "m.onnx", used)[0]
        same(found, wanted)
        same(irc.compile(tmp_path / "m.onnx").run(given_)["y"], wanted)


def test_what_cannot_be_spelt_out_is_refused(tmp_path: Path) -> None:
    graph = parse_graph("graph(%q : Tensor, %k : Tensor):\n  %y : Tensor = irc::attention(%q, %k, %k)\n  return (%y)")
    with pytest.raises(Error, match="known element type"):
        irc.export(irc.compile(graph, "none"), tmp_path / "m.onnx")


# -- by operators of PyTorch ---------------------------------------------------------

TORCH = """graph(%q : Float(b, 4, l, 8), %k : Float(b, 4, s, 8), %v : Float(b, 4, s, 3),
  %m : Float(l, s), %c : Bool(l, s)):
  %none : NoneType = prim::Constant()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %3 : int = prim::Constant[value=3]()
  %last : int = prim::Constant[value=-1]()
  %but : int = prim::Constant[value=-2]()
  %half : float = prim::Constant[value=0.5]()
  %low : float = prim::Constant[value=-inf]()
  %double : int = prim::Constant[value=7]()
  %float : int = prim::Constant[value=6]()
  %floor : str = prim::Constant[value="floor"]()
  %kt : Float(b, 4, 8, s) = aten::transpose(%k, %but, %last)
  %x : Float(b, 4, l, s) = aten::matmul(%q, %kt)
STEPS
  return (%y)"""

SOFTMAX = """
  %w : Float(b, 4, l, s) = aten::softmax(%z, %last, %none)
  %y : Float(b, 4, l, 3) = aten::matmul(%w, %v)"""

OF_SCORES = {
    "scaled": "%z : Float(b, 4, l, s) = aten::mul(%x, %half)",
    "divided": "%z : Float(b, 4, l, s) = aten::div(%x, %3)",
    "added": "%a : Float(b, 4, l, s) = aten::div(%x, %half)\n%z : Float(b, 4, l, s) = aten::add(%m, %a, %1)",
    "twice": "%a : Float(b, 4, l, s) = aten::add(%x, %m, %1)\n%z : Float(b, 4, l, s) = aten::add(%a, %m)",
    "filled": "%z : Float(b, 4, l, s) = aten::masked_fill(%x, %c, %low)",
    "partly": "%a : Float(b, 4, l, s) = aten::add(%x, %m, %1)\n"
    "%z : Float(b, 4, l, s) = aten::masked_fill(%a, %c, %but)",
    "chosen": "%z : Float(b, 4, l, s) = aten::where(%c, %x, %but)",
    "capped": "%a : Float(b, 4, l, s) = aten::div(%x, %half)\n%t : Float(b, 4, l, s) = aten::tanh(%a)\n"
    "%z : Float(b, 4, l, s) = aten::mul(%t, %half)",
}
"""How PyTorch's users write what is between the products."""


def of_torch(steps: str) -> str:
    return TORCH.replace("STEPS", "\n".join("  " + line.strip() for line in steps.strip().splitlines()))


def torch_feeds() -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(1)
    shapes = {"q": (2, 4, 5, 8), "k": (2, 4, 7, 8), "v": (2, 4, 7, 3), "m": (5, 7)}
    feeds: dict[str, np.ndarray[Any, Any]] = {n: rng.standard_normal(s, np.float32) for n, s in shapes.items()}
    return {**feeds, "c": rng.random((5, 7)) < 0.4}


@pytest.mark.parametrize("name", OF_SCORES)
def test_operators_of_torch(name: str, tmp_path: Path) -> None:
    graph, feeds = parse_graph(of_torch(OF_SCORES[name] + SOFTMAX)), torch_feeds()
    wanted = irc.compile(graph, "none").run(feeds)["y"]
    model = irc.compile(graph)
    assert kinds(model).count(KIND) == 1 and "aten::softmax" not in kinds(model)
    same(model.run(feeds)["y"], wanted)
    assert model.run(feeds)["y"].strides == wanted.strides
    model.save(tmp_path / "m.irc")
    same(irc.load(tmp_path / "m.irc").run(feeds)["y"], wanted)


@pytest.mark.parametrize(
    "steps",
    [
        "%z : Float(b, 4, l, s) = aten::softmax(%x, %3, %float)\n%y : Float(b, 4, l, 3) = aten::matmul(%z, %v)",
        "%z : Float(b, 4, l, s) = aten::softmax(%x, %last)\n%y : Float(b, 4, l, 3) = aten::matmul(%z, %v)",
        "%kk : Float(b, 4, 8, s) = aten::transpose(%k, %3, %2)\n%xx : Float(b, 4, l, s) = aten::matmul(%q, %kk)\n"
        "%w : Float(b, 4, l, s) = aten::softmax(%xx, %last, %none)\n%y : Float(b, 4, l, 3) = aten::matmul(%w, %v)",
    ],
)
def test_other_ways_to_say_the_same(steps: str) -> None:
    model, feeds = irc.compile(parse_graph(of_torch(steps))), torch_feeds()
    assert kinds(model).count(KIND) == 1
    same(model.run(feeds)["y"], irc.compile(parse_graph(of_torch(steps)), "none").run(feeds)["y"])


@pytest.mark.parametrize(
    "steps",
    [
        "%z = aten::add(%x, %m, %2)" + SOFTMAX,  # twice the mask
        "%z = aten::add(%x, %half, %1)" + SOFTMAX,
        "%d = aten::to(%m, %double)\n%z = aten::add(%x, %d, %1)\n%w = aten::softmax(%z, %last, %none)\n"
        "%o = aten::to(%v, %double)\n%y = aten::matmul(%w, %o)",
        "%z = aten::div(%x, %half, %floor)" + SOFTMAX,
        "%z = aten::mul(%x, %m)" + SOFTMAX,
        "%z = aten::where(%c, %x, %m)" + SOFTMAX,
        "%z = aten::softmax(%x, %2, %none)\n%y = aten::matmul(%z, %v)",  # down the columns
        "%a = aten::softmax(%x, %last, %double)\n%o = aten::to(%v, %double)\n%y = aten::matmul(%a, %o)",
        "%z = aten::clone(%x)\n%u = aten::add_(%x, %m, %1)" + SOFTMAX + "\n%o = aten::sum(%x)",
        "%w : Float(b, 4, l, s) = aten::softmax(%x, %last, %none)\n%o = aten::fill_(%k, %half)\n"
        "%y : Float(b, 4, l, 3) = aten::matmul(%w, %v)",
        "%z : Float(b, 4, l, s) = aten::mul(%x, %half)\n%w : Float(b, 4, l, s) = aten::softmax(%z, %last, %none)\n"
        "%p = aten::add(%w, %z, %1)\n%r = aten::matmul(%w, %v)\n%t = aten::sum(%p)\n%y = aten::add(%r, %t, %1)",
    ],
)
def test_operators_of_torch_that_do_something_else(steps: str) -> None:
    graph, feeds = parse_graph(of_torch(steps)), torch_feeds()
    wanted = irc.compile(graph, "none").run(feeds)["y"]
    model = irc.compile(graph)
    same(model.run(feeds)["y"], wanted)
    if "fill_" not in steps and "add_" not in steps:  # that moves away
        assert KIND not in kinds(model)


def test_of_batches_that_do_not_fit_there_is_no_product() -> None:
    """`bmm` takes no batches that would broadcast."""
    text = ir("""
        q: Float(a, l, 8); k: Float(b, 8, s); v: Float(c, s, 3) -> y
        x: "Float(*, l, s)" = bmm(q, k); w: "Float(*, l, s)" = softmax(x, -1); y: "Float(*, l, 3)" = bmm(w, v)
    """)
    rng = np.random.default_rng(0)
    for names, is_one in (("abc", False), ("bbb", True), ("bbc", False)):
        graph = parse_graph(text.replace("(a,", f"({names[0]},").replace("(c,", f"({names[2]},"))
        model = irc.compile(graph)
        assert (KIND in kinds(model)) is is_one
        for batches in ((2, 2, 2), (1, 2, 2), (2, 2, 1)):
            shapes = zip("qkv", batches, ((5, 8), (8, 7), (7, 3)))
            feeds = {n: rng.standard_normal((b, *shape), np.float32) for n, b, shape in shapes}
            if batches == (2, 2, 2):
                same(model.run(feeds)["y"], irc.compile(graph, "none").run(feeds)["y"])
                continue
            with pytest.raises(Error):
                model.run(feeds)


@pytest.mark.parametrize("dtype", ["Double", "Half"])
def test_element_types_of_torch(dtype: str) -> None:
    graph = parse_graph(of_torch(OF_SCORES["added"] + SOFTMAX).replace("Float", dtype))
    element = {"Double": np.float64, "Half": np.float16}[dtype]
    feeds = {n: x if x.dtype == bool else x.astype(element) for n, x in torch_feeds().items()}
    model = irc.compile(graph)
    assert kinds(model).count(KIND) == 1
    same(model.run(feeds)["y"], irc.compile(graph, "none").run(feeds)["y"], 1e-2 if dtype == "Half" else 1e-9)
