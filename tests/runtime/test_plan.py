"""Lowering and running straight-line graphs."""

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from irc.ir import Builder, DType, Graph, Module, Node, Tensor, Value, parse_graph, types
from irc.runtime.kernels.registry import kernel
from irc.runtime.plan import SPECIAL, lower
from tests.graphs import ir, typed_ir
from tests.runtime.helpers import f32, graph_of, module_of, run

FLOAT4 = types.tensor(DType.FLOAT, (4,))


def test_small_splats_are_plain_arrays_and_large_ones_are_not_written_out():
    graph = Graph()
    b = Builder(graph)
    small = b.constant(Tensor.splat(DType.FLOAT, (8, 8), 0.5))
    large = b.constant(Tensor.splat(DType.FLOAT, (1 << 30,), 0.5))
    graph.set_outputs([small, large])
    first, second = lower(graph).run([])
    assert first.flags.c_contiguous and not first.flags.writeable
    assert (first == 0.5).all() and first.shape == (8, 8)
    assert second.strides == (0,) and second.shape == (1 << 30,)


def test_values_are_dropped_after_their_last_use():
    alive: list[weakref.ref[np.ndarray]] = []
    seen: list[int] = []

    @kernel("test::make")
    def make(node):
        def run():
            seen.append(sum(ref() is not None for ref in alive))
            array = np.ones(4, np.float32)
            alive.append(weakref.ref(array))
            return array

        return run

    graph = Graph()
    b = Builder(graph)
    total = b.op("test::make", type=FLOAT4)
    for _ in range(5):
        total = b.op("onnx::Add", total, b.op("test::make", type=FLOAT4), type=FLOAT4)
    b.op("test::make", type=FLOAT4)  # used by nothing: dropped at once
    b.op("test::make", type=FLOAT4)
    graph.set_outputs([total])
    (result,) = lower(graph).run([])
    assert result.tolist() == [6] * 4
    # The first is needed until the second is there; later sums are not from `make`.
    assert seen == [0, 1, 0, 0, 0, 0, 0, 0]


EVERY_STEP = ir("""
    x: Float(2, 3); w: @Float(2, 3) -> longer, all
    n: Long() = prim.Constant(value={2}); f: Function = prim.Constant(name="Twice")
    y[Float(2, 3)], all[Float(2, 2, 3)] = Loop(n, True, x)
    with block(i=Long(), go=Bool(), v=Float(2, 3)):
        k: Bool() = Cast(i, to=9); c: Float(2, 3) = prim.If(k)
        with block(): called: Float(2, 3) = prim.CallFunction(f, v); yield called
        with block(): fused: Float(2, 3) = prim.FusionGroup_0(v, w); yield fused
        yield go, c, c
    go_on: bool = prim.Constant(value=True); z: Float(2, 3) = prim.Loop(2, go_on, y)
    with block(j=int, u=Float(2, 3)): d: Float(2, 3) = Neg(u); yield go_on, d
    first: Float(3) = prim.Constant(value=tensor([0., 0., 0.]))
    states[Float(3)], rows[Float(2, 3)] = Scan(first, z, num_scan_inputs=1, since_version=11)
    with block(h=Float(3), r=Float(3)): e: Float(3) = Add(h, r); yield e, e
    longer: Float(4, 3) = irc.append_(x, rows, axis=0)

    with FusionGroup_0 | p, q: Float(2, 3) -> m
    o: Float(2, 3) = Add(p, q); m: Float(2, 3) = LeakyRelu(o, alpha=0.5)

    Twice | x: Float(2, 3) -> z
    y: Float(2, 3) = Concat(x, axis=0); z: Float(2, 3) = Add(y, y)
""")


def refuse(*_: Any) -> Any:
    raise AssertionError("looked up while running")


class Untouchable(dict[Any, Any]):
    __getitem__ = get = __contains__ = __iter__ = __len__ = items = keys = values = refuse


@pytest.fixture
def untouchable(monkeypatch: pytest.MonkeyPatch) -> Callable[[Module], None]:
    """Makes all that is found by a name or an attribute of a module refuse that, wherever in it."""

    def make(module: Module) -> None:
        for graph in module.graphs.values():
            graph.weights = graph._values = Untouchable()
        module.weights = module.graphs = module.defaults = module.objects = module.metadata = Untouchable()
        for owner, name in ((Node, "attributes"), (Node, "name"), (Value, "name"), (Graph, "value")):
            monkeypatch.setattr(owner, name, refuse if name == "value" else property(refuse))

    return make


def test_no_kind_of_step_looks_anything_up_by_name_or_attribute(untouchable):
    """Branches, loops, scans, calls, fusion groups and appends, and what runs inside of them."""
    w = f32([1, -100, 1], [1, 1, -100])
    module = module_of(EVERY_STEP, {"w": w})
    assert {node.kind for graph in module.graphs.values() for node in graph.walk()} >= SPECIAL.keys()
    plan = lower(module.main)
    untouchable(module)
    x = f32([1, 2, 3], [4, 5, 6])
    longer, both = plan.run([x])
    first = np.where(x + w < 0, (x + w) / 2, x + w)
    np.testing.assert_array_equal(both, [first, 2 * first])
    np.testing.assert_array_equal(longer, [*x, *np.cumsum(2 * first, 0)])


def test_a_bad_attribute_names_the_node():
    text = """
    graph(%x : Long(2)):
      %y : Long(2) = onnx::BitShift[direction="UP"](%x, %x) # shifter
      return (%y)
    """
    with pytest.raises(Error, match=r"^IRC320: .*shifter"):
        lower(graph_of(text))


def test_an_attribute_of_a_wrong_type_is_an_error_of_the_model():
    text = """
    graph(%x : Float(2)):
      %y : Float(2) = onnx::Transpose[perm="sideways"](%x) # turner
      return (%y)
    """
    with pytest.raises(Error, match="turner"):
        lower(graph_of(text)).run([f32(1, 2)])


def test_a_value_from_another_graph_is_refused():
    graph, other = Graph(), Graph()
    stray = other.add_input(FLOAT4, "stray")
    graph.set_outputs([Builder(graph).op("onnx::Relu", stray, type=FLOAT4)])
    with pytest.raises(Error, match="%stray"):
        lower(graph)


def test_kernel_errors_name_node_and_inputs():
    text = """
    graph(%x : Float(2, 3), %y : Float(4, 5)):
      %z : Tensor = onnx::MatMul(%x, %y) # the product
      return (%z)
    """
    plan = lower(graph_of(text))
    with pytest.raises(Error) as caught:
        plan.run([np.ones((2, 3), np.float32), np.ones((4, 5), np.float32)])
    assert caught.value.where == "onnx::MatMul 'the product'"
    assert "float32[2, 3], float32[4, 5]" in caught.value.message
    (z,) = plan.run([np.ones((2, 3), np.float32), np.ones((3, 1), np.float32)])
    np.testing.assert_array_equal(z, [[3], [3]])


def test_interrupts_pass_through():
    @kernel("test::interrupt")
    def interrupt(node):
        def run():
            raise KeyboardInterrupt

        return run

    graph = Graph()
    graph.set_outputs([Builder(graph).op("test::interrupt", type=FLOAT4)])
    with pytest.raises(KeyboardInterrupt):
        lower(graph).run([])


A = -np.array([[1, 2], [3, -4]], np.float32)


@pytest.mark.parametrize(
    ("y", "reason"), [(np.ones((2, 3), np.float32), "shape"), (np.ones((1, 1, 3), np.float32), "shape")]
)
def test_in_place_variants_refuse_results_that_do_not_fit(y, reason):
    text = ir("x: Float(3); y: Tensor", "a: Float(3) = Add_(x, y)", "a")
    with pytest.raises(Error, match=reason) as caught:
        run(text, f32(1, 2, 3), y)
    assert caught.value.code == "IRC431"


def test_in_place_variants_refuse_read_only_memory():
    text = typed_ir("x: Float(3)", "a = Neg_(x)", "a")
    x = f32(1, 2, 3)
    x.flags.writeable = False
    with pytest.raises(Error, match="may not be changed"):
        run(text, x)
    assert x.tolist() == [1, 2, 3]


def test_only_pointwise_operators_have_in_place_variants():
    text = ir("x: Float(3, 3)", "a: Float(3, 3) = MatMul_(x, x)", "a")
    with pytest.raises(Error, match="in place"):
        run(text, np.eye(3, dtype=np.float32))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("aten::add_(%x)", "IRC213: .*aten::add_ does not take 1 argument: it is aten::add_"),
        ("aten::abs()", "IRC213: .*aten::abs does not take 0 arguments"),
        (
            "aten::cat(%x)",
            r"IRC423: .*cat does not take arguments of the types \(Float\(2\)\): it is aten::cat\(Tensor",
        ),
        ("onnx::Add(%x)", "IRC213: .*onnx::Add must have 2 inputs, not 1; inputs: float32"),
        ("onnx::Pad()", "IRC213: .*onnx::Pad must have 2 to 4 inputs, not 0"),
        ('onnx::Concat[axis="x"](%x, %x)', "IRC215: .*attribute axis of onnx::Concat must be INT"),
    ],
)
def test_a_failure_of_a_malformed_node_says_what_is_wrong_with_it(call, says):
    """Files that were changed are read without checking every operator."""
    graph = parse_graph(f"graph(%x : Float(2)):\n  %y : Tensor = {call}\n  return (%y)")
    with pytest.raises(Error, match=says):
        lower(graph).run([np.zeros(2, np.float32)])
