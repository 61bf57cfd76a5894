"""Shape inference: what it says must be true of what the operators really give."""

import re
from itertools import count

import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.ir import Builder, Graph, Tensor, parse_graph
from irc.ir.types import DType, ListType, TensorType, tensor
from irc.ops import Operator, register
from irc.passes import PassManager
from irc.passes.shapes import Inference
from tests.graphs import ir_graph
from tests.passes.helpers import assert_same_results


def _graph(*inputs):
    graph = Graph()
    values = [graph.add_input(type, f"in{i}") for i, type in enumerate(inputs)]
    return graph, Builder(graph), values


def inferred(*parts):
    """The graph of `ir` with the types that inference finds."""
    graph = ir_graph(*parts)
    Inference(graph).run()
    return graph


def types_of(*parts):
    return [str(value.type) for value in inferred(*parts).outputs]


def test_named_dimensions_survive_shape_arithmetic():
    """As exporters write Flatten."""
    reshape = "y = Reshape(x, Concat(Gather(Shape(x), [0], axis=0), [-1], axis=0))"
    assert types_of("x: Float(batch, 3, 4)", reshape, "y") == ["Float(batch, 12)"]


@pytest.mark.parametrize(
    ("x", "target", "found"),
    [
        (("M", 4), ("N", 4), (None, 4)),  # where N is 0, this is M
        (("N", 4), ("N", 2, 2), ("N", 2, 2)),
        (("N", 4), ("N", -1), ("N", 4)),
        ((4, "N"), ("N", 4), ("N", 4)),  # where N is 0, there would be 16 elements
        ((4, "N"), ("N", -1), (None, None)),
        ((6,), ("N", 2), ("N", 2)),  # N is 3: a 0 would copy 6, which is too many
        ((6,), ("N", 1), (None, 1)),  # N may be 6, or 0
        ((6,), (2, "N"), (2, "N")),  # a 0 would have nothing to copy
        (("B", "T", 12), ("B", "T", 3, 4), ("B", "T", 3, 4)),
        (("B", "T", 12), ("B", -1, 3, 4), ("B", "T", 3, 4)),
    ],
)
def test_a_named_size_may_be_0_which_asks_reshape_to_copy(x, target, found):
    names = sorted({d for d in (*x, *target) if isinstance(d, str)})
    graph, b, (value, *others) = _graph(tensor(DType.FLOAT, x), *(tensor(DType.FLOAT, (name,)) for name in names))
    named = {name: b.op("onnx::Shape", other) for name, other in zip(names, others)}
    parts = [named[d] if isinstance(d, str) else b.constant(Tensor.of(np.array([d]))) for d in target]
    y = b.op("onnx::Reshape", value, b.op("onnx::Concat", *parts, attributes={"axis": 0}))
    zeros = b.op("onnx::Reshape", value, y.node.inputs[1], attributes={"allowzero": 1})
    graph.set_outputs([y, zeros])
    Inference(graph).run()
    assert y.type == tensor(DType.FLOAT, found)
    if -1 not in target:
        assert zeros.type == tensor(DType.FLOAT, target)


def test_zero_rows_ask_reshape_to_copy_at_run_time_too():
    """The Expand stays: what it expands to is as many rows as the Reshape was asked for, not as it has."""
    graph = ir_graph("x: Float(M, 4); y: Float(N, 4)", "s = Shape(y); e = Expand(Reshape(x, s), s); z = Neg(e)", "z")
    before = graph.copy()
    PassManager("default").run(graph)
    x, y = np.ones((1, 4), np.float32), np.ones((0, 4), np.float32)
    assert_same_results(before, graph, x, y)


@pytest.mark.parametrize(
    ("bounds", "sizes"),
    [((-5, -9, -1), "2"), ((-1, -9, -2), "5, 3"), ((9, 0, -3), "5"), ((-9, 2, 1), "2, 3")],
)
def test_slices_in_shape_arithmetic_are_those_of_the_kernel(bounds, sizes):
    start, end, step = bounds
    body = f"s = Slice(Shape(x), [{start}], [{end}], [0], [{step}]); y = Expand(1.0, s)"
    found = types_of("x: Float(2, 3, 4, 5)", body, "s, y")
    assert found == [f"Long({len(sizes.split(','))})", f"Float({sizes})"]


@pytest.mark.parametrize("call", ["PRelu(a, b)", "Pow(a, b)", "SwiGLU(a, b)", "Where(c, a, b)"])
def test_what_broadcasts_is_as_large_as_all_of_it_is(call):
    found = types_of("c: Bool(2, 1); a: Float(N, 6); b: Float(6)", f"y = {call}", "y")
    assert found == [f"Float({2 if 'c' in call else 'N'}, 6)"]


@pytest.mark.parametrize("given", ["Any", "Union(Float(2), Float(3))", "(Tensor, int)"])
@pytest.mark.parametrize("kind", ["Relu", "Softmax", "Identity", "Dropout"])
def test_what_is_declared_to_be_a_tensor_stays_one_whatever_the_operand_may_be(kind, given):
    assert types_of(f"x: {given}", f'y: "Float(*)" = {kind}(x)', "y") == ["Float(*)"]


def test_contents_are_not_tracked_through_memory_that_is_written():
    assert types_of("x: Float(2, 3)", "s = Shape(x); w = Neg_(s); y = ConstantOfShape(s)", "y") == ["Float(*, *)"]


def test_loop_carried_shape_that_grows_is_forgotten():
    found = types_of("""
        x: Float(1, 4); m: Long(); c: Bool() -> y, totals
        y, totals = Loop(m, c, x)
        with block(i=Long(), d=Bool(), p=Tensor): n = Concat(p, x, axis=0); yield d, n, ReduceSum(n, keepdims=0)
    """)
    assert found == ["Float(*, 4)", "Float(*)"]


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("Softmax(x, axis=9223372036854775807)", "axis 9223372036854775807 is out of range"),
        ("LayerNormalization(x, x, axis=9223372036854775807)", "axis 9223372036854775807 is out of range for rank 2"),
        ("Transpose(x, perm=[0, 0])", r"perm \[0, 0\] is not a permutation"),
        ("ArgMax(x, axis=2)", "axis 2 is out of range"),
        ("Flatten(x, axis=3)", "axis 3 is out of range"),
    ],
)
def test_attributes_out_of_range_name_the_node(node, message):
    with pytest.raises(Error, match=message) as caught:
        inferred("x: Float(2, 3)", f"result = {node}", "result")
    assert caught.value.code == "IRC310"
    assert "%result" in caught.value.where


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_a_window_larger_than_its_input_fits_where_sizes_are_rounded_up(op):
    def pooled(stride, ceil):
        node = f"y = {op}(x, kernel_shape=[10, 4], strides=[{stride}, 4], ceil_mode={ceil})"
        return types_of("x: Float(1, 2, 7, 9)", node, "y")

    assert pooled(4, 1) == ["Float(1, 2, 1, 3)"]
    for stride, ceil in ((4, 0), (3, 1), (1, 1)):
        with pytest.raises(Error, match=r"IRC310.*a window of 10 does not fit spatial dimension 0"):
            pooled(stride, ceil)


@pytest.mark.parametrize(
    ("equation", "operands", "found"),
    [
        ("bij,bjk", "a: Float(N, 3, 4); b: Float(N, 4, M)", "Float(3, M)"),
        ("ba", "a: Float(2, 3)", "Float(3, 2)"),
        ("...ij, jk -> ...ki", "a: Float(N, 2, 3, 4); b: Float(4, 5)", "Float(N, 2, 5, 3)"),
        ("i...,...->...i", "a: Float(2, 1, 7); b: Float(N, 1)", "Float(N, 7, 2)"),
        ("ij,ij->ij", "a: Float(N, 1); b: Float(M, 4)", "Float(*, 4)"),
        ("ii->", "a: Float(3, 3)", "Float()"),
        ("ij,jk->ik", "a: Float(2, 3); b: Float", "Float"),
    ],
)
def test_equations_of_sums(equation, operands, found):
    names = "a, b" if "b:" in operands else "a"
    assert types_of(operands, f'y = Einsum({names}, equation="{equation}")', "y") == [found]


@pytest.mark.parametrize(
    ("inputs", "node", "found"),
    [
        ("a: Float(2, 3); b: Float(4, 5)", 'Einsum(a, b, equation="ij,jk->ik")', "sizes 3 and 4 cannot be broadcast"),
        (
            "a: Float(1, 4, 5, 5); b: Float(2, 3, 3, 3); c: Float(1, 18, 3, 3)",
            "DeformConv(a, b, c)",
            "4 input channels do not fit",
        ),
    ],
)
def test_operands_that_do_not_fit_together(inputs, node, found):
    with pytest.raises(Error, match=found):
        inferred(inputs, f"y = {node}", "y")


def test_transforms_and_states_of_known_sizes():
    found = types_of(
        "x: Float(N, 16, 1); z: Float(N, 9, 2); line: Float(N, 8, T); w: Float(8, 1, 4); columns: Float(N, 12, 9)",
        """
        a = DFT(x, since_version=20, onesided=1); b = DFT(x, 6, 1, since_version=20)
        c = DFT(z, since_version=20, onesided=1, inverse=1); d = DFT(z, 6, since_version=17, axis=1)
        e = STFT(x, [2, 2], None, 6, since_version=17); f, g = CausalConvWithState(line, w, since_version=27)
        h = Col2Im(columns, [4, 4], [2, 2], since_version=18)
        """,
        "a, b, c, d, e, f, g, h",
    )
    assert found == [
        *("Float(N, 9, 2)", "Float(N, 6, 2)", "Float(N, 16, 1)", "Float(N, 6, 2)", "Float(N, 6, 4, 2)"),
        *("Float(N, 8, T)", "Float(N, 8, 3)", "Float(N, 3, 4, 4)"),
    ]


def test_samples_and_determinants():
    given = "x: Float(2, 3, 7, 8); grid: Float(n, 4, 5, 2); m: Double(n, 3, 3)"
    assert types_of(given, "y = GridSample(x, grid); d = Det(m)", "y, d") == ["Float(2, 3, 4, 5)", "Double(n)"]


ODD = (f"test::odd_{number}" for number in count())


def with_rule(rule):
    """A new operator whose shape rule is ``rule``."""
    register(Operator(kind := next(ODD), shape=rule))
    return kind


@pytest.mark.parametrize("answer", [None, 5, [None], "Float(3)", (TensorType(), 3), [], [TensorType(), TensorType()]])
def test_what_a_rule_of_others_returns_must_be_a_type_for_each_result(answer):
    kind = with_rule(lambda types: answer)
    with pytest.raises(Error, match=re.escape(f"must return a type for each result, not {answer!r}")) as caught:
        inferred("x: Float(3)", f"y = {kind.replace('::', '.')}(x)", "y")
    assert (caught.value.code, caught.value.where) == ("IRC305", f"%y = {kind}")
    if answer == [] or answer == [TensorType(), TensorType()]:
        assert str(caught.value).endswith(": 1 result")


ODD_TYPES = [
    (TensorType(np.float32, (3,)), "the element type of a tensor is a DType.*, not <class 'numpy.float32'>"),
    (ListType(TensorType("Float")), "the element type of a tensor is a DType.*, not 'Float'"),
    (TensorType(DType.FLOAT, [3]), r"the shape of a tensor is a tuple.*, not \[3\]"),
    (TensorType(DType.FLOAT, 3), "the shape of a tensor is a tuple.*, not 3"),
    (ListType("Float"), ""),
    *((TensorType(DType.FLOAT, (d,)), f"a size is an integer.*, not {d!r}") for d in (2.5, True, b"x", np.True_)),
]


@pytest.mark.parametrize(("answer", "says"), ODD_TYPES)
def test_what_the_types_of_a_rule_of_others_are_made_of_is_checked(answer, says):
    def odd(types):
        return answer

    kind = with_rule(odd)
    graph, b, (x,) = _graph(tensor(DType.FLOAT, (3,)))
    graph.set_outputs([b.op("onnx::Relu", b.op(kind, x, name="y"))])
    with pytest.raises(Error, match=rf"IRC305: .*shape rule, {__name__}.*odd, must return a type .*{says}$"):
        Inference(graph).run()


def test_sizes_of_numpy_s_are_numbers():
    kind = with_rule(lambda types: TensorType(types.dtype(0), (np.prod((2, 3)),)))
    graph, b, (x,) = _graph(tensor(DType.FLOAT, (2, 3)))
    y = b.op(kind, x)
    Inference(graph).run()
    assert str(y.type) == "Tensor(6)" and y.type.shape[0].__class__ is int


def half(types):
    return TensorType(types.dtype(0), (types.shape(0)[0] // 2,))


def nowhere(types):
    return somewhere  # noqa: F821


@pytest.mark.parametrize(("rule", "says"), [(half, "TypeError"), (nowhere, "NameError")])
def test_where_a_rule_of_others_fails_is_told(rule, says):
    kind = with_rule(rule)
    graph, b, (x,) = _graph(tensor(DType.FLOAT, ("n",)))
    b.op(kind, x, name="y")
    place = rf"\({re.escape(__file__)}:{rule.__code__.co_firstlineno + 1}\)"
    with pytest.raises(Error, match=rf"IRC305: %y = {kind}: .*{rule.__name__}, fails: {says}: .*{place}"):
        Inference(graph).run()


@pytest.mark.parametrize("raised", [MemoryError, TimeoutError, type("Ended", (Exception,), {})])
def test_what_ends_a_compilation_is_not_the_rule_s(raised):
    def end(types):
        raise raised

    graph, b, (x,) = _graph(tensor(DType.FLOAT, ("n",)))
    b.op(with_rule(end), x, name="y")
    with pytest.raises(raised):
        Inference(graph).run()


def nested_loops(depth: int) -> Graph:
    """Loops in loops, each of which starts from the same value and doubles it."""
    lines, end = [], []
    for k in range(depth):
        at = "  " * (k + 1)
        lines.append(f"{at}%y{k} : Tensor = onnx::Loop(%m, %c, %x)")
        lines.append(f"{at}  block0(%i{k} : Long(), %c{k} : Bool(), %p{k} : Tensor):")
        end.append(f"{at}    -> (%c{k}, %r{k})")
        end.append(f"{at}    %r{k} : Tensor = onnx::Concat[axis=0](%p{k}, %p{k})")
    text = "\n".join(["graph(%m : Long(), %c : Bool(), %x : Float(2, 3)):", *lines, *reversed(end), "  return (%y0)"])
    return parse_graph(text)


def shifting_loop(width: int) -> Graph:
    """A loop whose carried values each take the place of the one before; the last grows."""
    carried = range(width)
    outs = ", ".join(f"%y{k} : Tensor" for k in carried)
    params = ", ".join(f"%p{k} : Tensor" for k in carried)
    given, shifted = ", ".join(["%x"] * width), ", ".join(f"%p{k}" for k in carried[1:])
    return parse_graph(f"""graph(%m : Long(), %c : Bool(), %x : Float(2, 3)):
  {outs} = onnx::Loop(%m, %c, {given})
    block0(%i : Long(), %d : Bool(), {params}):
      %r : Tensor = onnx::Concat[axis=0](%p0, %p0)
      -> (%d, {shifted}, %r)
  return ({", ".join(f"%y{k}" for k in carried)})
""")


@pytest.fixture
def visits(spy):
    """Of blocks by shape inference."""
    return spy(Inference, "_block")


def test_nested_loops_take_as_many_visits_as_there_are_loops_around(visits):
    graph = nested_loops(24)
    Inference(graph).run()
    assert visits.call_count < 24 * 50  # 2 ** 24 if each began anew whenever the one around it is repeated
    assert graph.value("y0").type == graph.value("y23").type == TensorType(DType.FLOAT, (None, 3))


def test_an_inner_loop_is_inferred_for_all_that_the_outer_one_carries():
    """The outer value is (2, 3) in the first round only."""
    graph = ir_graph("""
        m: Long(); c: Bool(); x: Float(2, 3) -> y
        y = Loop(m, c, x)
        with block(i=Long(), d=Bool(), p=Tensor):
            z = Loop(m, d, p)
            with block(j=Long(), e=Bool(), q=Tensor): n = Neg(q); yield e, n
            r = Concat(z, z, axis=0); yield d, r
    """)
    Inference(graph).run()
    assert {graph.value(name).type for name in "ypzqnr"} == {TensorType(DType.FLOAT, (None, 3))}


def test_values_that_shift_from_round_to_round_are_given_up(visits):
    graph = shifting_loop(200)
    Inference(graph).run()
    assert visits.call_count < 90
    assert {v.type for v in graph.outputs} == {TensorType(DType.FLOAT)}
    graph = shifting_loop(4)
    Inference(graph).run()
    assert {v.type for v in graph.outputs} == {TensorType(DType.FLOAT, (None, 3))}


def test_what_never_changes_keeps_its_type_beside_values_that_shift():
    carried = range(20)
    given, shifted = ", ".join(["%x"] * 20), ", ".join(f"%p{k}" for k in carried[1:])
    graph = parse_graph(f"""graph(%m : Long(), %c : Bool(), %x : Float(2, 3), %w : Double(4)):
  %v : Tensor, {", ".join(f"%y{k} : Tensor" for k in carried)} = onnx::Loop(%m, %c, %w, {given})
    block0(%i : Long(), %d : Bool(), %u : Tensor, {", ".join(f"%p{k} : Tensor" for k in carried)}):
      %n : Tensor = onnx::Neg(%u)
      %r : Tensor = onnx::Concat[axis=0](%p0, %p0)
      -> (%d, %n, {shifted}, %r)
  return (%v, %y0)
""")
    Inference(graph).run()
    assert [v.type for v in graph.outputs] == [TensorType(DType.DOUBLE, (4,)), TensorType(DType.FLOAT)]


def test_in_place_variants_have_the_types_of_what_they_stand_for():
    graph = ir_graph("""
        x: Float(N, 3); y, u: Float(1, 3) -> b, c
        a = Add_(x, y); b = Equal_(a, y); c = irc.slice_scatter_(a, u, starts=[0, 0], steps=[1, 1])
    """)
    Inference(graph).run()
    assert {graph.value(name).type for name in "ac"} == {TensorType(DType.FLOAT, ("N", 3))}
    assert graph.value("b").type == TensorType(DType.BOOL, ("N", 3))


@pytest.mark.parametrize("passes", ["none", "in-place", "shape-inference,in-place", "canonicalize"])
def test_an_empty_stack_has_the_same_shape_whatever_runs_in_place(passes):
    """The rank of a row follows from how many numbers the sum in the body has."""
    graph = ir_graph("""
            x: Float(2, 3); n: Long(); k: Float(2) -> y
            none: NoneType = prim.Constant(); zero: Float() = prim.Constant(value=splat(0.)); w, y = Loop(n, none, x)
            with block(i=Long(), c=Bool(), v=Tensor):
                s = Cast(Add(Neg(k), zero), to=7); r = Reshape(v, s); yield c, v, r
        """)
    feeds = {"x": np.ones((2, 3), np.float32), "n": np.array(0), "k": np.array([-3, -2], np.float32)}
    assert irc.compile(graph, passes).run(feeds)["y"].shape == (0, 0, 0)


@pytest.mark.parametrize(
    ("declared", "call", "shape"),
    [
        ("(1, 1, 3)", "onnx::ConvTranspose[pads=[9, 9]](%x, %w)", (1, 1, None)),
        ("(1, 1, 3)", "onnx::Conv[pads=[4611686018427387904, 4611686018427387904]](%x, %w)", (1, 1, None)),
        ("(4611686018427387904)", "onnx::Concat[axis=0](%x, %x)", (None,)),
        ("(1, 4611686018427387904, 4)", "onnx::Flatten(%x)", (1, None)),
    ],
)
def test_sizes_that_no_tensor_has_are_not_inferred(declared, call, shape, tmp_path):
    """Else files could not be read again, nor text."""
    text = f"graph(%x : Float{declared}, %w : Float(1, 1, 3)):\n  %y : Tensor = {call}\n  return (%y)"
    compiled = irc.compile(parse_graph(text), "shape-inference")
    assert compiled.outputs[0].shape == shape
    compiled.save(tmp_path / "m.irc")
    assert str(irc.load(tmp_path / "m.irc").graph) == str(compiled.graph)


@pytest.mark.parametrize(
    ("x", "y", "shape"),
    [
        ("(b, n, 4)", "(b, m, 4)", ("b", None, 4)),
        ("(a, n, 4)", "(2, m, *)", (None, None, None)),  # what has no positions need not fit
        ("(a, n, 3)", "(2, 1, *)", (2, None, None)),
        ("(a, 2, 4)", "(2, 1, *)", (2, 3, 4)),
        ("(1, 0, 3)", "(2, 1, c)", (2, 1, "c")),
        ("(1, 0, 3)", "(2, m, 4)", (None, "m", None)),
        ("(a, n, 4)", "(2, 1, 5)", (2, None, 5)),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_sizes_of_a_concatenation_are_those_of_what_surely_adds_to_it(x, y, shape, turned):
    x, y = (y, x) if turned else (x, y)
    text = f"graph(%x : Float{x}, %y : Float{y}):\n  %z : Tensor = onnx::Concat[axis=1](%x, %y)\n  return (%z)"
    assert irc.compile(parse_graph(text), "shape-inference").outputs[0].shape == shape


def test_truth_values_are_no_sizes():
    graph = ir_graph("", "y = ConstantOfShape([True], since_version=9)", "y")
    PassManager("shape-inference,canonicalize").run(graph)
    assert graph.outputs[0].type == TensorType(DType.FLOAT, (None,))


def test_more_memory_than_there_can_be_is_no_peak(tmp_path):
    text = "graph(%x : Float(1099511627776, 2097152)):\n  %y : Tensor = onnx::Relu(%x)\n  return (%y)"
    irc.compile(parse_graph(text)).save(tmp_path / "m.irc")
    assert irc.load(tmp_path / "m.irc").report.memory.peak is None
