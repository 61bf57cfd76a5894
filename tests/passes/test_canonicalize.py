"""Every canonicalisation rule: where it applies, where it must not, and what a write forbids.

The cases are in `rewrite_cases`.
"""

import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.ir import Graph
from irc.passes import PassManager
from irc.passes.canonicalize.match import RULES, Match
from irc.passes.shapes import Inference
from irc.runtime.plan import lower
from tests.effort import Spy
from tests.graphs import ir_graph, ir_module, typed_graph
from tests.passes.helpers import assert_same_results, kinds, run_passes
from tests.passes.rewrite_cases import APPLIES, ATTENTION, REFUSES, REPEATED

INPUTS = "x, p: Float(2, 3); q: Bool(2, 3); n: Float(N, 3); i: Long(2); c: Float(2, 1)"
RANDOM = np.random.default_rng(0)
FEEDS = (
    RANDOM.standard_normal((2, 3)).astype(np.float32),
    RANDOM.standard_normal((2, 3)).astype(np.float32),
    RANDOM.standard_normal((2, 3)) > 0,
    RANDOM.standard_normal((2, 3)).astype(np.float32),
    np.array([2, 3]),
    RANDOM.standard_normal((2, 1)).astype(np.float32),
)


def graph_of(body: str, last: str = "z = Abs(y)") -> Graph:
    return ir_graph(INPUTS, f"{body}\n{last}", "z")


def canonicalized(body: str, last: str = "z = Abs(y)") -> tuple[Graph, dict[str, int]]:
    """The graph afterwards, without dead code, and how often each rule was used; the results are the same."""
    before, graph = graph_of(body, last), graph_of(body, last)
    report = run_passes(graph, "canonicalize,dce")
    used = {k.removeprefix("canonicalize."): n for k, n in report.stats.items() if k.startswith("canon")}
    rounded = {
        "activation",
        "attention",
        "normalization",
    } & used.keys()  # sums in another order, quotients for products
    assert_same_results(before, graph, *FEEDS, rtol=1e-6 if rounded else 0)
    return graph, used


@pytest.mark.parametrize(("rule", "body", "left"), APPLIES)
def test_rule_applies(rule: str, body: str, left: str) -> None:
    graph, used = canonicalized(body)
    assert used[rule]
    assert kinds(graph) == [*left.split(), "Abs"]
    assert not left or graph.has_value("y")  # what is new has the name of what it stands for


@pytest.mark.parametrize(("rule", "body"), REFUSES)
def test_rule_refuses(rule: str, body: str) -> None:
    graph, used = canonicalized(body)
    assert rule not in used
    assert graph.value("y").node.kind == graph_of(body).value("y").node.kind


def test_every_rule_is_tested() -> None:
    rules = {rule.__name__ for *_, rule in RULES}
    assert {rule for rule, *_ in APPLIES} == rules
    assert {rule for rule, *_ in REFUSES} == rules - {"identity"}


# -- writes --------------------------------------------------------------------

WRITE_INPUTS = "w1 = Neg_(x); w2 = Neg_(n); w3 = Neg_(c); w4 = Neg_(i); "
LOOK_AT_RESULT = "z = Abs(y)"
WRITE_RESULT = "w = Neg_(y); "
LOOK_AT_INPUTS = "z1 = Add(x, n); z = Concat(z1, c, axis=1)"

FRESH = frozenset(
    """
    known_contents attention attention_of_shared_heads scale_of_attention shape_of_shared_heads scatter_to_slice
    scatter_overwritten same_contents reshape_by_numbers masked_softmax rotated_halves rotated_pairs activation
    normalization scale_of_normalization bias_of_normalization
""".split()
)
"""Rules that put one fresh result in the place of another."""

SAME = {"identity", "torch_dropout_at_inference"}
"""Rules for operators that give what they are given, memory and all."""

UNWRITTEN = {"known_contents", "rotated_pairs"}
"""Rules that put in its place what is written by nobody: a constant, or memory that shares with nothing any more."""


@pytest.mark.parametrize(("rule", "body"), [(rule, body) for rule, body, _ in APPLIES if rule not in FRESH])
def test_a_copy_of_what_is_written_later_stays(rule: str, body: str) -> None:
    _, used = canonicalized(body, WRITE_INPUTS + LOOK_AT_RESULT)
    assert rule not in used or rule in SAME


@pytest.mark.parametrize(
    ("rule", "body"),
    [(rule, body) for rule, body, _ in APPLIES if "Expand" not in body and rule not in FRESH - UNWRITTEN],
)
def test_what_is_written_stays_a_copy(rule: str, body: str) -> None:
    """And does not become a constant. (Expand's results repeat elements: nobody can write them.)"""
    _, used = canonicalized(body, WRITE_RESULT + LOOK_AT_INPUTS)
    assert rule not in used or rule in SAME


SCATTER_TWICE = """
k: Long(2, 1) = prim.Constant(value=tensor([1, 0])); s = ScatterND(x, k, p)
WRITE
u = Abs(p); y = ScatterND(s, k, u)
"""


@pytest.mark.parametrize("write", ["w = Neg_(x)", "w = Neg_(s)"])
def test_what_was_overwritten_is_not_looked_for_behind_a_write(write: str) -> None:
    _, used = canonicalized(SCATTER_TWICE.replace("WRITE", write))
    assert "scatter_overwritten" not in used


@pytest.mark.parametrize("write", ["w = Neg_(x)", "w = Neg_(r)"])
def test_heads_that_are_written_after_they_were_repeated_are_not_read_later(write: str) -> None:
    _, used = canonicalized(f"{REPEATED}{write}; y = irc.attention(left, r, r)")
    assert "attention_of_shared_heads" not in used


@pytest.mark.parametrize("write", ["z0 = Neg_(x)", "z0 = Neg_(p)", "z0 = Neg_(s)"])
def test_attention_on_what_is_written_between_its_products(write: str) -> None:
    _, used = canonicalized(ATTENTION.replace("w =", f"{write}; w ="))
    assert "attention" not in used


BOX = """
k0: Long(2, 1) = prim.Constant(value=tensor([0, 1])); k1: Long(2) = prim.Constant(value=tensor([0, 2]))
s: Long(2) = prim.Constant(value=splat(2)); a: Long(1) = prim.Constant(value=tensor([-1])); e0 = Expand(k0, s)
u0 = Unsqueeze(e0, a); e1 = Expand(k1, s); u1 = Unsqueeze(e1, a); k = Concat(u0, u1, axis=-1)
WRITE
v: Float(2, 2) = prim.Constant(value=tensor([5., 6., 7., 8.])); y = ScatterND(x, k, v)
"""


def test_a_box_of_indices_as_exporters_spell_it_out() -> None:
    graph, used = canonicalized(BOX.replace("WRITE", ""))
    assert used["scatter_to_slice"] == 1
    assert graph.value("y").node.attributes == {"starts": [0, 0], "steps": [1, 2]}
    assert kinds(graph) == ["slice_scatter", "Abs"]


@pytest.mark.parametrize("write", ["w = Sub_(k, k)", "z0 = zero_(k)"])
def test_indices_that_are_written_are_not_read_off(write: str) -> None:
    _, used = canonicalized(BOX.replace("WRITE", write))
    assert "scatter_to_slice" not in used


# -- what is around the rules --------------------------------------------------


def test_contents_are_not_read_past_a_call_that_writes_them() -> None:
    module = ir_module("""
        x: Float(2, 3) -> z, t
        f: Function = prim.Constant(name="negate"); s = Shape(x); prim.CallFunction(f, s); t = Abs(s)
        z = Gather(s, [0], axis=0)

        negate | p: Long(2) ->
        q = Neg_(p)
    """)
    before = module.copy()
    run_passes(module, "canonicalize")
    assert_same_results(before, module, FEEDS[0])


def test_what_a_rewrite_tells_about_later_shapes_is_used_at_once() -> None:
    """The contents of CastLike are not followed; once it has become its operand, the shapes that it gives are known."""
    body = """s: Long(2) = prim.Constant(value=tensor([2, 3])); m: Long(2) = CastLike(s, i); e: Float = Expand(x, m)
y: Float = Reshape(e, m)"""
    graph, used = canonicalized(body)
    assert used == {"nothing_to_do": 3}
    assert kinds(graph) == ["Abs"]


def test_what_a_removed_node_stated_is_used_where_its_operand_is() -> None:
    graph = ir_graph("""
        x: Tensor; z: Float(2, 3) -> b, d
        a = Squeeze(x); b = Add(z, a); c: Float(3) = Identity(a); d: Float(3) = Neg(c)
    """)
    run_passes(graph, "canonicalize")  # once more, it changes nothing
    a, b, d = (node.output for node in graph.nodes)
    assert [str(value.type) for value in (a, b, d)] == ["Float(3)", "Float(2, 3)", "Float(3)"]


# -- sizes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "indices", ["Long(1, 1) = prim.Constant(value=tensor([0]))", "Long(1, 3) = prim.Constant(value=splat(0))"]
)
def test_updates_that_do_not_fit_are_left_to_the_run(indices: str) -> None:
    """A slice would take the updates of more rows than there are indices."""
    graph = graph_of(f"k: {indices}; y = ScatterND(x, k, p)")
    report = run_passes(graph, "canonicalize")
    assert not any("scatter" in name for name in report.stats)
    assert graph.value("y").node.kind == "onnx::ScatterND"


@pytest.mark.parametrize(("more", "left"), [(", x", "Max Abs"), ("", "Expand Max Abs")])
def test_expands_for_nothing_go_at_once_but_for_one_that_gives_the_result_its_shape(more: str, left: str) -> None:
    names = [f"e{i}" for i in range(5)]
    graph, used = canonicalized(
        f"{'; '.join(f'{e} = Expand(c, [2, 3])' for e in names)}; y = Max({', '.join(names)}{more})"
    )
    assert used["operand_expanded_for_nothing"] == 1
    assert kinds(graph) == left.split()


def test_long_chains_of_reshapes_are_not_walked_again_at_every_link(spy: Spy) -> None:
    same = spy(Match, "surely_same_type")

    def compared(links: int) -> int:
        same.reset_mock()
        chain = [f"r{i + 1} = Reshape(r{i}, i)" for i in range(links)]
        run_passes(graph_of("\n".join(["r0 = Neg(x)", *chain]), f"z = Abs(r{links})"), "canonicalize")
        return same.call_count

    assert compared(200) < 2.5 * compared(100)


@pytest.mark.parametrize("kind", ["Identity", "Dropout"])
def test_a_node_is_inferred_once_for_all_of_its_inputs_that_are_replaced(kind, spy):
    visits = spy(Inference, "infer_node")
    copies = "; ".join(f"a{i}: Float(2, 3) = {kind}(x)" for i in range(50))
    graph = ir_graph("x: Float(2, 3)", f"{copies}; z = Concat({', '.join(f'a{i}' for i in range(50))}, axis=0)", "z")
    PassManager("canonicalize").run(graph)
    assert set(graph.value("z").node.inputs) == {graph.value("x")}
    assert sum(node.kind == "onnx::Concat" for node in (call.args[1] for call in visits.call_args_list)) == 2


@pytest.mark.parametrize("kind", ["conj", "_conj", "mH", "adjoint"])
@pytest.mark.parametrize("written", [False, True])
def test_conjugates_that_nothing_writes_are_copies(kind, written):
    module = ir_module("x: Tensor", f"y = {kind}(x); {'w = add_(y, x, 1)' * written}", "y")
    model = irc.compile(module, "canonicalize,dce")
    kinds = {node.kind for node in model.graph.walk()}
    assert ("aten::conj_physical" in kinds) == (not written)
    if not written:
        x = np.array([[1, 2 + 1j], [3j, 4]], np.complex64)
        expected = x.conj() if "conj" in kind else x.conj().T
        np.testing.assert_array_equal(model.run({"x": x})[model.outputs[0].name], expected)


def test_what_two_outputs_are_is_written_out_once() -> None:
    """The Identity that keeps the name of the second is left alone when the pass runs again."""
    g = typed_graph("x: Float(3, 1)", "s = Shape(x); n = Shape(s); a = Expand(s, n); b = Expand(s, n)", "b, a")
    run_passes(g, "canonicalize")
    assert g.value("b").made_by("onnx::Identity") is not None


def test_dropout_with_a_wrong_probability_stays_and_is_refused() -> None:
    graph = ir_graph("x: Float(2, 3)", "y: Float(2, 3) = dropout(x, 2.0, False)", "y")
    assert not PassManager("canonicalize").run(graph).changed
    with pytest.raises(Error, match=r"IRC424.*probability of dropout is 2\.0"):
        lower(graph).run([np.ones((2, 3), np.float32)])
