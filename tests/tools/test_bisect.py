"""`bisect` names the rewrite, the kernel or the backend that is wrong, and leaves at most five nodes that show it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
import pytest

import irc
from benchmarks.yolov3 import build
from irc.fuser.subgraph import subgraph_of
from irc.ir import Builder, DType, Graph, Node, Tensor, TensorType, parse_graph, parse_module
from irc.passes import PassContext
from irc.passes.registry import PIPELINES
from irc.runtime.backends import Backend
from irc.runtime.kernels.registry import kernel
from irc.runtime.plan import lower
from irc.tools.bisect import Bisection, bisect
from tests.effort import slow_if
from tests.graphs import ir, typed_ir
from tests.tools.networks import light, network

UNFUSED = PIPELINES["unfused"]


def yolo(size: int = 64) -> onnx.ModelProto:
    return build(image_size=size, width_divisor=16 if size < 416 else 1, batch_norm=True)


@dataclass(frozen=True)
class Faulty:
    """A pass that does one thing to each node of a kind, and that wrong for some of them."""

    name: ClassVar[str] = "faulty"
    kind: str
    edit: str
    asks: bool = True

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        changed = False
        for node in list(graph.walk()):
            if node.kind == self.kind and (not self.asks or ctx.allow(node)):
                changed = globals()[self.edit](graph, node, ctx) or changed
        if changed:
            ctx.drop_alias_db(graph)
        return changed


def replaced(graph: Graph, node: Node, kind: str, *operands: Any, **attributes: Any) -> bool:
    """Put an operator of another kind, or on other operands, in place of ``node``."""
    made = Builder(graph, before=node).op(kind, *operands, attributes=attributes, version=node.version)
    made.type = node.outputs[0].type
    node.outputs[0].replace_all_uses_with(made)
    made.succeed(node.outputs[0])
    node.erase()
    return True


def test_nothing_is_wrong() -> None:
    with pytest.raises(irc.Error, match="nothing is wrong: on 3 sets of inputs") as error:
        bisect(network(50))
    assert error.value.code == "IRC333"


# -- faults --------------------------------------------------------------------


def swaps(graph: Graph, node: Node, ctx: PassContext) -> bool:
    """A difference between a product and something else is turned around."""
    product = node.inputs[0].made_by("onnx::Mul")
    return product is not None and replaced(graph, node, node.kind, *reversed(node.inputs))


def swaps_one(graph: Graph, node: Node, ctx: PassContext) -> bool:
    return node.name == "sub_697" and replaced(graph, node, node.kind, *reversed(node.inputs))


def folds_wrong(graph: Graph, node: Node, ctx: PassContext) -> bool:
    """The exponential of a constant is folded in half precision; of one, to the reciprocal."""
    constant = node.inputs[0].made_by("prim::Constant")
    if constant is None:
        return False
    array = np.exp(constant.attributes["value"].numpy())
    value = Builder(graph, before=node).constant(Tensor.of(1 / array if node.name == "exp_67" else array))
    node.outputs[0].replace_all_uses_with(value)
    return True


def sinks(graph: Graph, node: Node, ctx: PassContext) -> bool:
    """A square root is moved to the end, behind what uses it."""
    if node.name != "sqrt_65" or node.next is None:
        return False
    node.move_before(graph.block.return_node)
    return True


def raises(graph: Graph, node: Node, ctx: PassContext) -> bool:
    """A pass fails where a softmax is of a scaled product."""
    if node.inputs[0].made_by("onnx::Mul") and node.name == "softmax_32":
        raise ValueError("no such axis")
    return False


def overwrites(graph: Graph, node: Node, ctx: PassContext) -> bool:
    """A negation is made over its operand, which others read later."""
    if node.name != "neg_48":
        return False
    value = node.inputs[0]
    node.kind = "onnx::Neg_"
    later = [user for user in value.iter_users() if user is not node]
    for user in later:
        user.move_after(node)
    return bool(later) or True


def misstates(graph: Graph, node: Node, ctx: PassContext) -> bool:
    """A transposition says that it gives the shape that it was given."""
    if node.name != "transpose_54":
        return False
    node.outputs[0].type = TensorType(DType.FLOAT, (3, 8))
    return True


def reorders(graph: Graph, node: Node, ctx: PassContext) -> bool:
    """Operands of a difference in a group are exchanged."""
    members = [each for each in subgraph_of(node).nodes if each.kind == "onnx::Sub"]
    for each in members:
        each.set_inputs(each.inputs[::-1])
    return bool(members)


def negates(graph: Graph, node: Node, ctx: PassContext) -> bool:
    """What is below zero is kept, and not what is above, in some nodes, though nobody was asked."""
    node.version = 6
    return node.name.endswith(("2", "3")) and replaced(graph, node, "onnx::Neg", node.inputs[0])


def flattens(graph: Graph, node: Node, ctx: PassContext) -> bool:
    """A dimension is not added, so that what is concatenated later does not fit together."""
    return node.name == "/y3/Unsqueeze_5" and replaced(graph, node, "onnx::Identity", node.inputs[0])


FAULTS: dict[str, tuple[Any, Faulty, str, str]] = {
    "a wrong rewrite": (lambda: network(50), Faulty("onnx::Sub", "swaps"), UNFUSED, "onnx::Sub 'sub_"),
    "one of 1,300 nodes": (lambda: network(1300), Faulty("onnx::Sub", "swaps_one"), "", "onnx::Sub 'sub_697'"),
    "a wrong fold": (lambda: network(100), Faulty("onnx::Exp", "folds_wrong"), "", "onnx::Exp 'exp_67'"),
    "dominance": (lambda: network(200), Faulty("onnx::Sqrt", "sinks"), "", "onnx::Sqrt 'sqrt_65'"),
    "an exception": (lambda: network(200), Faulty("onnx::Softmax", "raises"), "", "onnx::Softmax 'softmax_32'"),
    "a wrong write": (lambda: network(60), Faulty("onnx::Neg", "overwrites"), "", "onnx::Neg 'neg_48'"),
    "a wrong shape": (
        lambda: network(80),
        Faulty("onnx::Transpose", "misstates", False),
        "",
        "onnx::Transpose 'transpose_",
    ),
    "the order in a group": (lambda: network(50), Faulty("prim::FusionGroup", "reorders"), f"{UNFUSED},fuse", "sub_22"),
    "a pass that asks nobody": (
        lambda: light("densenet121"),
        Faulty("onnx::Relu", "negates", False),
        UNFUSED,
        "onnx::Relu",
    ),
}


def check(found: Bisection, folder: Path, at: str) -> None:
    assert at in found.rewrite
    assert 1 <= found.nodes <= 5
    assert [Path(path).exists() for path in found.files] == [True] * len(found.files)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_pass_is_found(fault: str, tmp_path: Path) -> None:
    make, faulty, before, at = FAULTS[fault]
    model = make()
    found = bisect(model, [*filter(None, [before]), faulty, "cse,dce"], directory=tmp_path)
    assert (found.culprit, found.name.partition("{")[0]) == ("pass", "faulty")
    check(found, tmp_path, at)


@dataclass(frozen=True)
class Tilts:
    """Normalises LeakyRelu, the thirtieth wrong: no part of the model has so many."""

    name: ClassVar[str] = "tilts"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        nodes = [node for node in graph.nodes if node.kind == "onnx::LeakyRelu"]
        wrong = [node for number, node in enumerate(nodes) if ctx.allow(node) and number == 30]
        for node in wrong:
            node.attributes["alpha"] = 0.5
        return bool(wrong)


@pytest.mark.parametrize("size", slow_if([64, 416], [416]))
def test_yolov3_takes_few_compilations_and_runs(size: int, tmp_path: Path) -> None:
    found = bisect(yolo(size), [UNFUSED, Tilts(), "fuse,dce"], directory=tmp_path)
    assert found.compilations + found.runs <= 40
    check(found, tmp_path, "tilts at %/s4/s4.2/b/b.2/LeakyRelu_output_0 = onnx::LeakyRelu '/s4/s4.2/b/b.2/LeakyRelu'")
    model, changed = (onnx.load(path) for path in found.files if path.endswith(".onnx"))
    assert [node.attribute[0].f for node in (model.graph.node[0], changed.graph.node[0])] == pytest.approx([0.1, 0.5])


# -- control flow, lists, randomness, functions ----------------------------------


INSIDE = ir("""
    x: Float(n, 3); n: Long(); c: Bool() -> z, rows
    u: Float(n, 3) = Abs(x); y[Float(n, 3)], rows = Loop(n, c, u)
    with block(i=Long(), going=Bool(), s=Float(n, 3)):
        a: Float(n, 3) = Exp(x); b: Float(n, 3) = Relu(s); d: Float(n, 3) = Sub(a, b)
        k: Float(n, 3) = prim.If(going)
        with block(): p: Float(n, 3) = Mul(d, a); q: Float(n, 3) = Sub(p, d); r: Float(n, 3) = Tanh(q); yield r
        with block(): yield d
        t: Float(n, 3) = Sigmoid(k); yield going, t, d
    z: Float(n, 3) = Neg(y)
""")

LISTS = typed_ir("""
    x: Float(n, 3) -> s, n
    a = RandomNormalLike(x, seed=3.); m = Mul(a, x); b = Sub(m, x); l: "Float(n, 3)[]" = SequenceConstruct(a, b)
    zero: Long() = prim.Constant(value={0}); n: "Float(n, 3)[]" = SequenceInsert(l, x, zero)
    y: "Float(*, 3)" = ConcatFromSequence(n, axis=0); h: "Half(*, 3)" = Cast(y, to=10); s: "Half(*, 3)" = Sqrt(h)
""")


@pytest.mark.parametrize("text", [INSIDE, LISTS])
@pytest.mark.parametrize("asks", [True, False])
def test_a_fault_inside_of_loops_and_before_lists_is_found(text: str, asks: bool, tmp_path: Path) -> None:
    found = bisect(parse_module(text), [UNFUSED, Faulty("onnx::Sub", "swaps", asks), "cse"], directory=tmp_path)
    check(found, tmp_path, "%q = onnx::Sub" if text is INSIDE else "%b = onnx::Sub")
    assert found.nodes <= 2


# -- kernels and backends ------------------------------------------------------


@pytest.fixture
def wrong_kernels(own_registries: None) -> None:
    """Softmax adds up to two for three rows, Max fails for five; a mean of seven columns is twice what it should be."""

    def softmax(x: Any, out: Any = None) -> Any:
        e = np.exp(x - x.max(-1, keepdims=True))
        return np.divide(e, e.sum(-1, keepdims=True) / (2 if len(x) == 3 else 1), out=out)

    def largest(*arrays: Any, out: Any = None) -> Any:
        if len(arrays[0]) == 5:
            raise irc.Error("IRC421", "five rows are too many")
        return np.maximum(*arrays, out=out)

    def mean(x: Any, out: Any = None) -> Any:
        return np.mean(x, -1, keepdims=True, out=out) * (2 if x.shape[-1] == 7 else 1)

    kernel("onnx::ReduceMean", since=13)(lambda node: mean)
    kernel("onnx::Softmax", since=13)(lambda node: softmax)
    kernel("onnx::Max", since=13)(lambda node: largest)


@pytest.mark.parametrize(("rows", "name"), [(3, "onnx::Softmax"), (5, "onnx::Max")])
def test_a_kernel_that_is_wrong_for_one_shape_is_found(
    rows: int, name: str, wrong_kernels: None, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    found = bisect(network(70), given={"x": np.ones((rows, 8), np.float32)}, directory=tmp_path)
    assert (found.culprit, found.name, found.nodes) == ("kernel", name, 1)
    check(found, tmp_path, name)


def test_a_kernel_that_is_wrong_is_no_fault_of_the_backend_that_does_without_it(
    wrong_kernels: None, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    text = typed_ir("""
        x: Float(3, 7) -> y
        a = Neg(x); m = ReduceMean(a, axes=[-1], keepdims=1, since_version=13); y = Sub(a, m)
    """)
    found = bisect(parse_graph(text), given={"x": np.ones((3, 7), np.float32)}, directory=tmp_path)
    assert (found.culprit, found.name, found.nodes) == ("kernel", "onnx::ReduceMean", 1)


class Careless(Backend):
    """Computes groups as the interpreter does, but for a difference of products, which it turns around."""

    name = "careless"

    def refuses(self, group: Graph) -> None:
        return None

    def compile_group(self, group: Graph, operands: Any) -> Any:
        wrong = group.copy()
        for node in wrong.nodes:
            if node.kind == "onnx::Sub" and node.inputs[0].made_by("onnx::Mul"):
                node.set_inputs(node.inputs[::-1])
        plan = lower(wrong)

        def run(*arrays: Any, out: Any = None) -> Any:
            found = [np.array(x) for x in plan.run(arrays)]
            places = out if isinstance(out, list) else [out] * len(found)
            for i, place in enumerate(places):
                if place is not None:
                    place[...], found[i] = found[i], place
            return tuple(found) if len(found) > 1 else found[0]

        return run


def test_a_backend_that_is_wrong_is_found(tmp_path: Path) -> None:
    found = bisect(network(200), backend=Careless(), directory=tmp_path)
    assert (found.culprit, found.name, found.passes) == ("backend", "careless", "fuse")
    check(found, tmp_path, "onnx::Sub 'sub_")


WRITTEN = typed_ir("""
    x: Float(n, 4) -> h, a
    one: int = prim.Constant(value=1); a = exp(x); v = t(a); b = relu_(v); c = add_(a, x, one); d = sub(v, b, one)
    e = neg_(v); f = mul(d, e); g = sub(f, e, one); h = tanh_(g)
""")


def negates_written(graph: Graph, node: Node, ctx: PassContext) -> bool:
    """What is written over an argument is something else."""
    node.kind = "aten::abs_"
    return True


def test_a_fault_amid_writes_is_found(tmp_path: Path) -> None:
    found = bisect(parse_module(WRITTEN), [Faulty("aten::neg_", "negates_written"), "cse"], directory=tmp_path)
    check(found, tmp_path, "%e = aten::neg_")
    assert found.files[0].endswith(".irc")


def test_a_reference_tells_what_is_right() -> None:
    """irc itself is wrong then, without any pass: nobody can tell where, if others agree with irc."""
    given = {"x": np.ones((2, 8), np.float32)}
    right = irc.compile(network(50), "none").run(given)
    assert bisect(network(50), [Faulty("onnx::Sub", "swaps")], given=given, reference=lambda feeds: right).nodes <= 5
    with pytest.raises(irc.Error, match="nothing is wrong"):
        bisect(network(50), given=given, reference=lambda feeds: right)
    with pytest.raises(irc.Error, match="other results than the reference without any pass"):
        bisect(network(50), given=given, reference=lambda feeds: {name: x + 1 for name, x in right.items()})
