"""Which operators run in place after re-ordering, what must not move, and what it may cost."""

import re
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import irc
from irc.alias import AliasDb, analyze
from irc.ir import Builder, DType, Graph, Node, Tensor, Value, parse_graph, types
from irc.passes import PassManager
from irc.passes.instruments import OptimisationLimit
from irc.runtime.profile import Profile
from irc.runtime.report import peak_bytes
from tests.effort import Spy, examples
from tests.graphs import ir, ir_graph, typed_ir
from tests.passes.helpers import assert_becomes, assert_same_results, assert_unchanged, kinds, run_passes, transform
from tests.programs.generator import Program, programs
from tests.programs.running import expected, run

X = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)

SHAPE_AFTER_ADD = typed_ir("x: Float(2, 4)", "a = Softmax(x); b = Add(a, x); s = Shape(a); y = Expand(b, s)", "y")


def body(text: str, inputs: str = "x: Float(2, 4)") -> str:
    """IR text of such inputs, outputs and statements, see `ir`; results have the types that inference finds."""
    return typed_ir(f"{inputs} {dedent(text).strip()}")


# -- what moves ----------------------------------------------------------------


def test_shape_is_read_before_its_tensor_is_overwritten():
    after = typed_ir("x: Float(2, 4)", "a = Softmax(x); s = Shape(a); b = Add(a, x); y = Expand(b, s)", "y")
    assert_becomes(SHAPE_AFTER_ADD, "reorder", after)
    assert kinds(transform(SHAPE_AFTER_ADD, "in-place")) == ["Softmax", "Add", "Shape", "Expand"]
    assert kinds(transform(SHAPE_AFTER_ADD, "reorder,in-place")) == ["Softmax", "Shape", "Add_", "Expand"]
    assert_same_results(parse_graph(SHAPE_AFTER_ADD), transform(SHAPE_AFTER_ADD, "reorder,in-place"), X)


def test_more_operators_run_in_place():
    chain = ["a0 = Softmax(x)"]
    for i in range(10):
        chain.append(f"a{i + 1} = {f'Mul(a{i}, a{i})' if i % 5 == 4 else f'Exp(a{i})'}; s{i} = Shape(a{i})")
    text = body("\n".join([f"-> a10, {', '.join(f's{i}' for i in range(10))}", *chain]))
    plain, better = (PassManager(p).run(parse_graph(text)).stats for p in ("in-place", "reorder,in-place"))
    assert plain["in-place.in_place"] == 0
    assert better["in-place.in_place"] == better["reorder.in_place"] == 10  # x * x too


def test_views_are_readers_of_the_same_memory():
    text = "-> b, m\na = Softmax(x); v = Reshape(a, [8]); b = Exp(a); m = ReduceMax(v, keepdims=1)"
    graph = transform(body(text), "reorder,in-place")
    assert kinds(graph) == ["Softmax", "Reshape", "ReduceMax", "Exp_"]


def test_what_the_late_reader_needs_comes_along():
    text = ir("""
        x: Float(2, 4) -> c, t
        a: Float(2, 4) = Softmax(x); b: Float(2, 4) = Exp(a); c: Float(2, 4) = Neg(b); s: Long(2) = Shape(x)
        z: Long(2) = Neg(s); t: Float(2, 1) = ReduceMax(a, z)
    """)
    graph = transform(text, "reorder")
    assert kinds(graph) == ["Softmax", "Shape", "Neg", "ReduceMax", "Exp", "Neg"]


def test_inputs_that_the_caller_may_donate():
    graph = parse_graph(body("-> b, s\nb = Exp(x); s = Shape(x)"))
    stats = run_passes(graph, "reorder").stats
    assert kinds(graph) == ["Shape", "Exp"]
    assert (stats["reorder.in_place"], stats["reorder.in_place_if_donated"]) == (0, 1)


def test_nested_blocks_each_by_itself():
    text = body(
        """
        -> r, q, y, u
        t: bool = prim.Constant(value=1); a = Softmax(x); r, q = prim.If(c)
        with block():
            b = Softmax(x); d = Exp(b); e = Shape(b); yield d, e
        with block():
            f = prim.Loop(n, t, x)
            with block(i=int, p=Float(2, 4)):
                g = Softmax(p); h = Neg(g); k: Float(2, 1) = ReduceMax(g); l = Add(h, k); yield t, l
            m = Shape(x); yield f, m
        y = Neg(a); u = Shape(a)
        """,
        "x: Float(2, 4); n: int; c: bool",
    )
    graph = transform(text, "reorder")
    assert kinds(graph) == [
        *("Softmax", "If", "Softmax", "Shape", "Exp"),
        *("Loop", "Softmax", "ReduceMax", "Neg", "Add", "Shape"),
        *("Shape", "Neg"),
    ]
    for choice in (True, False):
        assert_same_results(parse_graph(text), graph, X, np.array(3), np.array(choice))


def test_a_branch_that_reads_a_value_is_a_reader():
    text = """
        -> b, r
        a = Softmax(x); b = Exp(a); r = prim.If(c)
        with block(): s = Shape(a); yield s
        with block(): t = Shape(x); yield t
    """
    graph = transform(body(text, "x: Float(2, 4); c: bool"), "reorder")
    assert kinds(graph) == ["Softmax", "If", "Shape", "Shape", "Exp"]


# -- what stays ----------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        # b can be over x, as it is, or over y, behind c
        "-> a, b, c, s\na: Float(2, 4) = Add(x, y); s: Long(2) = Shape(x); b: Float(2, 4) = Add(y, x)\n"
        "c: Float(2, 4) = Softmax(y)",
        # d is over b; for c to be over a it would have to wait for e, which waits for d
        "-> f, s, t\na: Float(4, 4) = MatMul(x, y); s: Long(2) = Shape(x); b: Float(4, 4) = MatMul(y, a)\n"
        "c: Float(4, 4) = Add(b, a); t: Long(2) = Shape(y); d: Float(4, 4) = Add(a, b); e: Float(4, 4) = MatMul(a, d)\n"
        "f: Float(4, 4) = MatMul(c, e)",
    ],
)
def test_what_would_gain_nothing_stays(text: str) -> None:
    assert_unchanged(ir(f"x, y: Tensor {text}"), "reorder")


CONSTANT = "prim.Constant(value=tensor([1., 2., 3., 4., 5., 6., 7., 8.]))"


@pytest.mark.parametrize(
    ("outputs", "made", "text"),
    [
        ("y", "Softmax(x)", "b = Exp(a); t = Softmax(b); y = MatMul(a, t)"),  # the other reader needs it
        ("b, s, a", "Softmax(x)", "b = Exp(a); s = Shape(a)"),  # the caller reads it last
        ("b, s", "Softmax(x)", "b = Pow(a, a); s = Shape(a)"),  # no operand of it is free
        ("b, s", "Softmax(x)", "b = Greater(a, x); s = Shape(a)"),  # the result is of another type
        ("b, s, t, x", "ReduceMax(x)", "b = Add(a, x); s = Shape(a); t = Shape(x)"),  # it is larger
        ("b, s", CONSTANT, "b = Exp(a); s = Shape(a)"),  # a constant is never overwritten
        ("b, s", "Softmax(x)", "k: int = custom.unknown(a); b = Exp(a); s = Shape(a)"),  # nor what unknown code knows
    ],
)
def test_without_need_nothing_moves(outputs, made, text):
    types = {"s": "Long(2)", "t": "Float(2, 4)" if "Softmax(b)" in text else "Long(2)", "y": "Float(2, 4)"}
    types |= {"a": "Float(2, 1)" if "Reduce" in made else "Float(2, 4)", "b": "Float(2, 4)"}
    types |= {"b": "Bool(2, 4)"} if "Greater" in text else {}
    told = re.sub(r"\b([abstyk]) = ", lambda name: f"{name[1]}: {types[name[1]]} = ", f"a = {made}; {text}")
    assert_unchanged(ir("x: Float(2, 4)", told, outputs), "reorder")


@pytest.mark.parametrize(
    ("between", "moves"),
    [
        ("w: Float(2, 4) = relu_(d)", True),
        ("w: Float(2, 4) = relu_(a)", False),  # the later reader sees it, the earlier one does not
        ("w: Float(2, 4) = relu_(b)", True),
        ('prim.RaiseException("m")', False),  # nothing passes it
        ("w: Float(2, 4) = custom.unknown(d)", False),
    ],
)
def test_nothing_passes_what_it_depends_on(between, moves):
    made = "a: Float(2, 4) = clone(x); d: Float(2, 4) = clone(x); b: Float(2, 4) = relu(a)"
    text = ir(f"x: Float(2, 4) -> b, s, d\n{made}; {between}; s: Float(2, 4) = softmax(a, 1)")
    graph = transform(text, "reorder")
    order = [n.kind for n in graph.nodes]
    assert (order.index("aten::softmax") < order.index("aten::relu")) is moves


def test_random_operators_keep_their_order():
    text = "-> b, c, d\na = RandomUniformLike(x); b = Exp(a); c = RandomNormalLike(b); d = RandomNormalLike(a)"
    assert_unchanged(body(text), "reorder")


def test_never_more_memory_at_the_peak():
    """Behind MatMul, Add could run in place; but at Tile's turn %w would still be alive, which is larger than %c."""
    text = ir("""
        x: Float(2, 4); n: Long(2) -> c, d
        a: Float(2, 4) = Softmax(x); w: Float(2, 1) = ReduceMax(x); b: Float(2, 4) = Add(a, w)
        c: Float() = ReduceMax(b); e: Float(2, 400) = Tile(x, n); f: Float(2, 4) = ReduceL1(e)
        d: Float(2, 4) = MatMul(a, f)
    """)
    graph = parse_graph(text)
    report = run_passes(graph, "reorder")
    assert kinds(graph) == kinds(parse_graph(text))
    assert any("more memory" in n.reason for n in report.remarks)


def test_one_move_at_a_time_for_bisection():
    graph = parse_graph(SHAPE_AFTER_ADD)
    PassManager("reorder", [OptimisationLimit(0)]).run(graph)
    assert kinds(graph) == ["Softmax", "Add", "Shape", "Expand"]


# -- always --------------------------------------------------------------------


@examples(150)
@given(programs())
def test_programs_compute_what_they_did(program: Program) -> None:
    wanted = expected(program)
    for pipeline in ("reorder", "reorder,in-place"):
        module = program.module.copy()
        run_passes(module, pipeline)  # verifies, compares the alias analysis with a new one, and runs again
        note(f"after {pipeline}\n{module}")
        wanted.check(run(program, module.main))


FLOAT = types.tensor(DType.FLOAT, (2, 2))


@st.composite
def onnx_graphs(draw: st.DrawFn) -> Graph:
    """Branching graphs of small arrays, all of whose shapes are known."""
    graph = Graph()
    b = Builder(graph)
    values = [graph.add_input(FLOAT, name) for name in "xy"]
    others: list[Value] = []
    axes = b.constant(Tensor.of(np.array([0])))

    def pick() -> Value:
        return values[-draw(st.integers(1, min(6, len(values))))]

    for _ in range(draw(st.integers(1, 25))):
        choice = draw(st.sampled_from("uuubbbsrcm"))
        if choice == "u":
            values.append(b.op(f"onnx::{draw(st.sampled_from(['Neg', 'Relu', 'Identity']))}", pick(), type=FLOAT))
        elif choice == "b":
            values.append(b.op(f"onnx::{draw(st.sampled_from(['Add', 'Sub', 'Max']))}", pick(), pick(), type=FLOAT))
        elif choice == "s":
            others.append(b.op("onnx::Shape", pick(), type=types.tensor(DType.INT64, (2,))))
        elif choice == "r":
            kept = b.op("onnx::ReduceMax", pick(), axes, type=types.tensor(DType.FLOAT, (1, 2)))
            values.append(b.op("onnx::Add", pick(), kept, type=FLOAT))
        elif choice == "c":
            wide = types.tensor(DType.FLOAT, (16, 2))
            joined = b.op("onnx::Concat", *[pick() for _ in range(8)], type=wide, attributes={"axis": 0})
            others.append(b.op("onnx::ReduceMax", joined, axes, type=types.tensor(DType.FLOAT, (1, 2))))
        else:
            values.append(b.op("onnx::MatMul", pick(), pick(), type=FLOAT))
    graph.set_outputs([pick(), *others])
    run_passes(graph, "dce")
    return graph


@examples(100)
@given(onnx_graphs())
def test_no_more_bytes_no_fewer_operators_in_place(graph: Graph) -> None:
    plain, better = graph.copy(), graph.copy()
    moved = run_passes(better, "reorder").stats["reorder.in_place"]
    note(f"{plain}\n{better}")
    inputs = [np.float32([[1, -2], [3, 4]]), np.float32([[0, 5], [-1, 2]])]
    assert_same_results(plain, better, *inputs)
    assert check_order(plain, better)
    assert bytes_of(better) <= bytes_of(plain)
    was, now = followed(plain, inputs), followed(better, inputs)
    assert now.counters.in_place == was.counters.in_place + moved
    assert now.peak <= was.peak
    before, after = (run_passes(g, "in-place").stats["in-place.in_place"] for g in (plain, better))
    assert after >= before
    assert_same_results(graph, better, *inputs)


def followed(graph: Graph, inputs: list[np.ndarray]) -> Profile:
    """What the first run of ``graph`` as it is does, where memory is allocated result by result."""
    return irc.compile(graph, passes="none").profile(dict(zip("xy", inputs)))


def bytes_of(graph: Graph) -> int:
    """Most bytes alive, if the caller keeps what it gave."""
    kept = graph.copy()
    kept.set_outputs([*kept.outputs, *kept.inputs])
    peak = peak_bytes(kept, analyze(kept))
    assert peak is not None
    return peak


def check_order(plain: Graph, better: Graph) -> bool:
    """Whether the nodes are the same, and none of the second graph comes before what it needs."""
    better.verify()
    return sorted(map(name, plain.nodes)) == sorted(map(name, better.nodes))


def name(node: Node) -> tuple[str, ...]:
    return (node.kind, *(v.name for v in node.outputs))


# -- cost ----------------------------------------------------------------------


@pytest.mark.parametrize("readers", [1, 3])
def test_work_is_linear(readers: int, spy: Spy):
    asked = spy(AliasDb, "reach_set")
    counts: list[int] = []
    for length in (200, 800):
        graph = Graph()
        b = Builder(graph)
        x = graph.add_input(FLOAT)
        value, shapes = b.op("onnx::Softmax", x, type=FLOAT), list[Value]()
        for _ in range(length):
            old, value = value, b.op("onnx::Neg", value, type=FLOAT)
            shapes += [b.op("onnx::Shape", old, type=types.tensor(DType.INT64, (2,))) for _ in range(readers)]
        graph.set_outputs([value, *shapes])
        asked.reset_mock()
        stats = PassManager("reorder").run(graph).stats
        assert stats["reorder.in_place"] == length
        counts.append(asked.call_count)
    assert counts[1] <= 4.2 * counts[0]


def test_nodes_of_several_results_take_no_memory():
    graph = ir_graph("x: Tensor", "p, q = sin(split(relu(x), 2, 2)); w = relu_(q)", "p")
    assert not PassManager("reorder").run(graph).changed


def test_one_analysis_serves_the_whole_pass():
    stats = PassManager("reorder,in-place").run(parse_graph(SHAPE_AFTER_ADD)).stats
    assert stats["alias.built"] == 1
