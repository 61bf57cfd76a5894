"""What passes do to weights: fold, share and drop them."""

import numpy as np
import pytest

from irc.errors import Error
from irc.ir import Builder, DType, Graph, Tensor, parse_graph, parse_module, types
from irc.passes import PassManager
from tests.graphs import ir, typed_ir
from tests.passes.helpers import assert_same_results, kinds, run_passes, transform

W = np.arange(20, dtype=np.float32).reshape(4, 5)

TRANSPOSED = typed_ir("x: Float(2, 5); w: @Float(4, 5)", "t = Transpose(w, perm=[1, 0]); y = MatMul(x, t)", "y")


def test_weights_fold_and_unused_ones_are_dropped():
    graph = transform(TRANSPOSED, "constant-fold", {"w": W})
    assert kinds(graph) == ["MatMul"]
    assert graph.value("t").node.attributes["value"].name == "t"
    assert list(graph.weights) == ["w", "t"]
    array = graph.weights["t"].numpy()
    assert array.flags.c_contiguous
    assert not array.flags.writeable
    assert not np.shares_memory(array, W)
    run_passes(graph, "dce")
    assert list(graph.weights) == ["t"]
    assert_same_results(parse_graph(TRANSPOSED, {"w": W}), graph, np.ones((2, 5), np.float32))


def test_a_reshaped_weight_is_not_copied():
    text = typed_ir("x: Float(2, 20); w: @Float(4, 5)", "t = Reshape(w, [20, 1]); y = MatMul(x, t)", "y")
    graph = transform(text, "constant-fold", {"w": W})
    assert np.shares_memory(graph.weights["t"].numpy(), W)


def test_a_part_of_a_weight_does_not_keep_the_whole():
    text = typed_ir("x: Float(5); w: @Float(400, 5)", "t = Slice(w, [3], [20]); y = Add(x, t)", "y")
    w = np.arange(2000, dtype=np.float32).reshape(400, 5)
    graph = transform(text, "constant-fold", {"w": w})
    assert not np.shares_memory(graph.weights["t"].numpy(), w)
    np.testing.assert_array_equal(graph.weights["t"].numpy(), w[3:20])


@pytest.mark.parametrize(("limit", "folded"), [(79, False), (80, True)])
def test_size_limit(limit, folded):
    graph = parse_graph(TRANSPOSED, {"w": W})
    report = PassManager(f"constant-fold{{max-bytes={limit}}}").run(graph)
    assert report.changed is folded
    assert [n.reason for n in report.remarks] == (
        [] if folded else ["not folded: it takes 80 bytes, more than the limit of 79 (option max-bytes)"]
    )


def test_nothing_large_is_computed_to_find_that_it_is_too_large():
    text = ir("""
        -> e, r, s, t
        n: Long(2) = prim.Constant(value=tensor([1099511627776, 2]))
        v: Float(2) = prim.Constant(value=tensor([1., 2.])); e = Expand(v, n)
        i: Long() = prim.Constant(value=tensor([1])); r = Range(0, 1099511627776, i); c = ConstantOfShape(n)
        s = ReduceSum(c); t = Tile(v, 1099511627776)
    """)
    graph = parse_graph(text)
    report = PassManager("constant-fold").run(graph)
    assert kinds(graph) == ["Expand", "Range", "ReduceSum", "Tile"]
    assert graph.value("c").node.attributes["value"].is_splat
    assert len(report.remarks) == 4


def test_what_would_take_days_is_left_to_the_run():
    text = """
graph():
  %x : Float(1, 1, 3000, 3000) = prim::Constant[value=@"x"]()
  %w : Float(1, 1, 2999, 2999) = prim::Constant[value=@"w"]()
  %c : Float(1, 1, 3000, 3000) = onnx::Conv[auto_pad="SAME_UPPER"](%x, %w)
  %a : Float(64, 64) = prim::Constant[value=@"a"]()
  %m : Float(64, 64) = onnx::MatMul(%a, %a)
  return (%c, %m)
"""
    weights = {
        "x": np.arange(9_000_000, dtype=np.float32).reshape(1, 1, 3000, 3000),
        "w": np.arange(2999 * 2999, dtype=np.float32).reshape(1, 1, 2999, 2999),
        "a": np.arange(4096, dtype=np.float32).reshape(64, 64),
    }
    graph = parse_graph(text, weights)
    report = PassManager("constant-fold").run(graph)
    assert kinds(graph) == ["Conv"]
    assert "multiplications" in report.remarks[0].reason


def test_many_products_have_one_budget(tune):
    """Each alone would be little work."""
    tune("irc.passes.constant_fold._MAX_MULTIPLICATIONS", 3500)
    graph = Graph()
    build = Builder(graph)
    w = [build.constant(Tensor.of(np.arange(100, dtype=np.float32).reshape(10, 10) + i)) for i in range(6)]
    graph.set_outputs([build.op("onnx::MatMul", a, a, type=types.TensorType(DType.FLOAT, (10, 10))) for a in w])
    report = PassManager("constant-fold,constant-fold").run(graph)
    assert kinds(graph) == ["MatMul"] * 3
    assert "3500 multiplications" in report.remarks[0].reason


@pytest.mark.parametrize(
    ("weights", "growth", "folded"), [(10, 0, 0), (10, 2 * 4000, 2), (10, 1 << 20, 5), (16 * 1000, 0, 2)]
)
def test_results_larger_than_their_inputs_have_one_budget_or_an_eighth_of_the_weights(weights, growth, folded):
    b = Builder(Graph())
    x = b.graph.add_input(types.tensor(DType.FLOAT, (1000,)), "x")
    w = b.constant(b.graph.weights.add("w", Tensor.of(np.arange(weights, dtype=np.float32))))
    for i in range(5):
        start, end, step = (b.constant(Tensor.of(np.array(v, np.float32))) for v in (i, i + 1000, 1))
        x = b.op("onnx::Add", x, b.op("onnx::Range", start, end, step))
    b.graph.set_outputs([x, w])
    run_passes(b.graph, f"constant-fold{{max-growth={growth}}}")
    assert kinds(b.graph).count("Range") == 5 - folded


STANDARDIZED = """
  %w{i} : Float(4, 250) = prim::Constant[value=@"w{i}"]()
  %t{i} : Float(250, 4) = onnx::Transpose[perm=[1, 0]](%w{i})
  %m{i} : Float(1, 4) = onnx::ReduceMean[axes=[0], since_version=13](%t{i})
  %d{i} : Float(250, 4) = onnx::Sub(%t{i}, %m{i})
  %s{i} : Float(250, 4) = onnx::Mul(%d{i}, %d{i})
  %v{i} : Float(1, 4) = onnx::ReduceMean[axes=[0], since_version=13](%s{i})
  %n{i} : Float(250, 4) = onnx::Div(%t{i}, %v{i})"""


@pytest.mark.parametrize(("growth", "folded"), [(4000 + 300, 5), (4000 - 300, 0)])
def test_growth_ends_where_results_are_folded_into_others(growth, folded):
    """Of weights that are standardised, all are folded if there is room for one result more at a time."""
    body = "".join(STANDARDIZED.format(i=i) for i in range(5))
    text = f"graph():{body}\n  return ({', '.join(f'%n{i}' for i in range(5))})\n"
    weights = {f"w{i}": np.random.default_rng(i).standard_normal((4, 250)).astype(np.float32) for i in range(5)}
    graph = transform(text, f"constant-fold{{max-growth={growth}}}", weights)
    assert [kinds(graph).count(kind) for kind in ("Sub", "Div")] == [5 - folded] * 2


def test_parts_of_one_weight_make_no_room_each():
    """Of what is there for others still, nothing has gone."""
    lines = []
    for i in range(5):
        lines += [
            f'  %w{i} : Float(1000) = prim::Constant[value=@"w"]()',
            f"  %t{i} : Float(1) = onnx::Slice[starts=[{i}], ends=[{i + 1}], since_version=1](%w{i})",
            f"  %y{i} : Float(1000) = onnx::Neg(%u)",
            f"  %z{i} : Float(1000) = onnx::Mul(%y{i}, %t{i})",
        ]
    names = ", ".join(f"%z{i}" for i in range(5))
    text = "\n".join(
        ["graph():", '  %u : Float(1000) = prim::Constant[value=@"u"]()', *lines, f"  return (%u, {names})\n"]
    )
    numbers = np.arange(1, 1001, dtype=np.float32)
    graph = transform(text, "constant-fold{max-growth=9000}", {"w": numbers, "u": numbers})
    assert kinds(graph).count("Mul") == 3


def test_half_precision_weights_become_floats_without_counting_as_growth():
    text = ir("x: Float(2, 4); w: @Half(4, 5)", "t: Float(4, 5) = Cast(w, to=1); y: Float(2, 5) = MatMul(x, t)", "y")
    graph = transform(text, "constant-fold{max-growth=0}", {"w": W.astype(np.float16)})
    assert kinds(graph) == ["MatMul"]
    assert graph.weights["t"].numpy().dtype == np.float32


def test_absent_weights_are_no_constants():
    graph = parse_graph(TRANSPOSED)
    report = PassManager("constant-fold,conv-bn-fold,cse,constant-pool,dce").run(graph)
    assert not report.changed
    assert kinds(graph) == ["Transpose", "MatMul"]


def test_evaluation_that_fails_is_left_to_the_run():
    graph = parse_graph(TRANSPOSED, {"w": W})

    def broken(node, arrays):
        raise ArithmeticError("out of luck")

    report = PassManager("constant-fold", evaluate=broken).run(graph)
    assert not report.changed
    assert "out of luck" in report.remarks[0].reason


def test_without_a_kernel_nothing_is_computed():
    graph = parse_graph(TRANSPOSED, {"w": W})
    report = PassManager("constant-fold", evaluate=lambda node, arrays: None).run(graph)
    assert not report.changed
    assert [remark.reason for remark in report.remarks] == ["not folded: there is no kernel for it"]


def equal_weights(a: np.ndarray, b: np.ndarray) -> Graph:
    return parse_graph(
        f"""
graph(%x : Float({", ".join(map(str, a.shape))})):
  %v : Float({", ".join(map(str, a.shape))}) = prim::Constant[value=@"v"]()
  %w : Float({", ".join(map(str, b.shape))}) = prim::Constant[value=@"w"]()
  %s : Tensor = onnx::Add(%x, %v)
  %y : Tensor = onnx::Add(%s, %w)
  return (%y)
""",
        {"v": a, "w": b},
    )


@pytest.mark.parametrize("size", [17, 1000, 3_000_000])
def test_weights_of_equal_contents_are_one(size):
    a = np.arange(size, dtype=np.float32)
    graph = equal_weights(a, a.copy())
    run_passes(graph, "constant-pool,dce")
    assert list(graph.weights) == ["v"]
    changed = a.copy()
    changed[size - 2] = -1
    graph = equal_weights(a, changed)
    assert not PassManager("constant-pool,dce").run(graph).changed
    assert list(graph.weights) == ["v", "w"]


def test_bits_tell_weights_apart():
    zeros = np.arange(17, dtype=np.float32)
    negative = zeros.copy()
    negative[0] = -0.0
    assert not PassManager("constant-pool").run(equal_weights(zeros, negative)).changed
    nans = np.full(17, np.nan, np.float32)
    nans[0] = 1
    graph = equal_weights(nans, nans.copy())
    assert PassManager("constant-pool").run(graph).changed


def test_weights_of_all_graphs_of_a_module_are_kept():
    module = parse_module(
        ir("""
            x: Float(4, 5) -> z
            f: Function = prim.Constant(name="f"); y: Float(4, 5) = prim.CallFunction(f, x)
            z: Float(4, 5) = FusionGroup_0(y)

            with FusionGroup_0 | x: Float(4, 5); u: @Float(4, 5) -> y
            y: Float(4, 5) = Add(x, u)

            f | x: Float(4, 5); w: @Float(4, 5); v: @Float(4, 5) -> y
            y: Float(4, 5) = Add(x, w)
        """),
        {"w": W, "u": W + 1, "v": W + 2, "t": W + 3},
    )
    PassManager("dce").run(module)
    assert set(module.weights) == {"w", "u", "v"}  # the main graph went first
    PassManager("dce").run(module)
    assert set(module.weights) == {"w", "u"}


def test_weights_that_are_attributes_are_kept():
    tensor = Tensor.of(W, "k")
    graph = Graph()
    graph.weights["k"] = tensor
    graph.weights["unused"] = Tensor.of(W + 1, "unused")
    node = graph.create("com.acme::Table", outputs=[types.TENSOR], attributes={"tables": [tensor]})
    graph.block.append(node)
    graph.set_outputs(node.outputs)
    PassManager("dce").run(graph)
    assert list(graph.weights) == ["k"]


def test_a_constant_whose_contents_are_unknown_cannot_be_pooled_or_folded():
    graph = parse_graph("""
graph():
  %a : Tensor = prim::Constant[value=<Tensor>]()
  %b : Tensor = prim::Constant[value=<Tensor>]()
  %c : Tensor = aten::neg(%a)
  %d : Tensor = aten::add(%c, %b)
  return (%d)
""")
    before = str(graph)
    PassManager("cse,constant-pool,constant-fold").run(graph)
    assert str(graph) == before


def test_error_of_a_missing_weight_names_it():
    graph = parse_graph(TRANSPOSED)
    with pytest.raises(Error, match="IRC306: weight 'w': IR text does not hold"):
        graph.value("w").node.attributes["value"].numpy()
