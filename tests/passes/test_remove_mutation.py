"""In-place operators made functional: the same results, no writes; and each reason why some stay."""

from itertools import product
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from irc.alias import analyze
from irc.errors import Error
from irc.ir import Builder, Graph, parse_graph, types
from irc.ops import Effects, register
from irc.passes import PassContext, PassManager, RemoveMutation
from irc.runtime.plan import lower
from tests.graphs import ir, ir_graph, ir_module, typed_graph, typed_ir
from tests.operators import operator_of
from tests.passes.helpers import assert_same_results, cases, kinds, run_passes

X = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
Y = np.array([[5, -1, 2], [0, 7, -4]], np.float32)


def program(text: str) -> str:
    """IR text of a program as for `ir`; after outputs alone come statements on `x` and its copy `a`."""
    outputs, _, body = dedent(text).strip("\n").partition("\n")
    return ir(f"x, y: Tensor; n: int; q: bool {outputs}\na = clone(x)\n{body}" if outputs.startswith("->") else text)


def without_writes(text: str, *feeds: tuple[Any, ...]) -> Graph:
    """The graph in ``text`` without its writes; of each of the ``feeds`` it computes what it did."""
    before, graph = parse_graph(text), parse_graph(text)
    run_passes(graph, "remove-mutation")
    assert not [kind for kind in kinds(graph) if kind.endswith("_")], str(graph)
    for feed in feeds:
        assert_same_results(before, graph, *feed)
    return graph


def removed(body: str) -> Graph:
    """The program without its writes; it computes what it did, whatever branches and trip counts."""
    return without_writes(program(body), *product([X], [Y], (0, 1, 3), (False, True)))


def stays(body: str, why: str) -> None:
    """The writes in a program, or a whole graph, stay, because of ``why``."""
    graph = parse_graph(program(body))
    before = str(graph)
    report = run_passes(graph, "remove-mutation")
    assert str(graph) == before
    assert any(why in note.reason for note in report.remarks), [note.reason for note in report.remarks]


# -- views ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "view",
    [
        "select(a, 0, 1)",
        "select(a, 1, 0)",
        "slice(a, 1, 1)",
        "slice(a, 1, None, None, 2)",
        "t(a)",
        "transpose(a, 0, 1)",
        "permute(a, order)",
        "unsqueeze(a, 1)",
        "squeeze(a)",
        "view(a, [3, 2])",
        "detach(a)",
    ],
)
def test_what_is_written_into_a_view_is_seen_in_the_whole_and_in_other_views(view):
    graph = removed(f"""
        -> a, v, w, row, before, after
        order = prim.ListConstruct(1, 0); v = {view}; row = select(a, 0, 1)
        before = neg(row); w = mul_(v, 2); after = neg(row)
    """)
    assert "mul" in kinds(graph)


REMOVED = """
== views of views
-> a, t, s, e, w, u
t = t(a); s = slice(t, 0, 1); e = select(s, 1, 0); w = add_(e, 1); u = relu_(t)

== a write may read what it writes
-> a, v, u, z
v = slice(a, 1, 0, 2); u = slice(a, 1, 1); w = add_(v, clone(u)); z = mul_(a, a)

== broadcast writes keep the shape
-> a, w, u
w = copy_(a, select(y, 0, 1)); v = slice(a, 1, 0, 2); u = add_(v, slice(select(y, 0, 0), 0, 0, 2))

== a loop carries the memory
-> a, v, r
v = select(a, 0, 0); r = prim.Loop(n, True, y)
with block(i=int, p=Tensor): w = add_(v, select(p, 0, 1)); m = add(p, a); yield True, m

== what a loop carries unchanged is the memory itself
-> a, r
r = prim.Loop(n, True, a)
with block(i=int, p=Tensor):
    w = add_(p, y); b = prim.If(q)
    with block(): u = relu_(w); yield u
    with block(): yield a
    yield True, b
z = neg_(r)

== nested loops
-> a, r
r = prim.Loop(n, True, y)
with block(i=int, p=Tensor):
    w = add_(a, p); s = prim.Loop(2, True, p)
    with block(j=int, o=Tensor): u = mul_(a, 2); m = add(o, a); yield True, m
    yield True, s

== lists and copies that are done with do not matter
-> a, b, d, e
l: "Tensor[]" = prim.ListConstruct(a, y); b = cat(l, 0); d = neg(reshape(a, [3, 2])); w = add_(a, 1)
m: "Tensor[]" = prim.ListConstruct(a, y); e = cat(m, 0)

== a list that is read later is made anew
-> b
l: "Tensor[]" = prim.ListConstruct(a, y); w = add_(a, 1); b = cat(l, 0)

== a list of several that are written
-> b, d, e, a
c = clone(y); l: "Tensor[]" = prim.ListConstruct(a, c); w = add_(a, 1); b = cat(l, 0); v = add_(c, 1); d = cat(l, 0)
u = mul_(a, 2); t = mul_(c, 2); e = cat(l, 0)

== what a loop carries in the place of the memory is not the memory
-> r, a
r = prim.Loop(n, True, a)
with block(i=int, p=Tensor): s = neg(p); w = mul_(a, 2); u = add(s, 1, 1); yield True, u

== a view taken anew does not mind how the memory is laid out
-> a, t, w, v
t = t(a); w = add_(t, contiguous(t(y))); v = view(a, [3, 2])
"""


@pytest.mark.parametrize("body", cases(REMOVED))
def test_programs_without_writes_compute_the_same(body):
    removed(body)


def test_the_element_type_of_the_target_stays():
    """``copy_`` converts what it writes, arithmetic as far as that keeps the kind."""
    text = ir("i: Long(2); f: Float(2)", "a = clone(i); w = copy_(a, f); b = clone(f); u = add_(b, i)", "a, b")
    graph = without_writes(text, (np.array([1, 2]), np.array([2.7, -3.2], np.float32)))
    assert kinds(graph)[:2] == ["clone", "copy"]


@pytest.mark.parametrize(
    ("write", "x"),
    [
        ("add_(a, 1.5)", np.array([1, 2])),
        ("div_(a, 1)", np.array([1, 2])),
        ("clamp_(a, 1.5, 1.5)", np.array([1, 2])),
        ("pow_(a, 1.5)", np.array([1, 2])),
        ("addcmul_(a, y, y)", np.array([1, 2])),
        ("mul_(select(a, 0, 1), 1.5)", np.array([1, 2])),
        ("sub_(unsqueeze(a, 1), 1.5)", np.array([1, 2])),
        ("mul_(a, 2)", np.array([True, False])),
        ("add_(slice(a, 0, 1), 1)", np.array([True, False])),
    ],
)
def test_what_the_target_cannot_hold_stays_an_error(write, x):
    before = ir_graph("x, y: Tensor", f"a = clone(x); w = {write}", "a")
    after = before.copy()
    run_passes(after, "remove-mutation,cse,dce")
    assert "overwrite" in kinds(after)
    for graph in (before, after):
        with pytest.raises(Error, match=r"IRC431.*cannot be written into a tensor"):
            lower(graph).run([x, np.array([1.5, 2.5], np.float32)])


def test_comparisons_convert_truth_values():
    text = "a: {0} = clone(x); w: {0} = gt_(a, 0); v = select(a, 0, 0); u = le_(v, y)"
    half = np.array(0.5, np.float32)
    for x in (np.array([-1, 2]), np.array([-1.5, 2], np.float32), np.array([False, True])):
        without_writes(ir("x, y: Tensor", text.format("Tensor"), "a, v, w"), (x, half))
    typed = ir("x: Float(2); y: Tensor", text.format("Float(2)"), "a, v, w")
    without_writes(typed, (np.float32([-1.5, 2]), half))


def test_types_that_tell_spare_conversions():
    graph = ir_graph("x: Float(2, 3); y: Float(3)", "a: Float(2, 3) = clone(x); w: Float(2, 3) = mul_(a, y)", "a")
    run_passes(graph, "remove-mutation")
    assert kinds(graph) == ["clone", "mul"]


# -- control flow --------------------------------------------------------------


def test_a_branch_passes_the_memory_on():
    graph = removed("""
        -> a, z
        v = select(a, 0, 0); r = prim.If(q)
        with block(): w = add_(v, 1); yield w
        with block(): k = select(x, 0, 1); yield k
        z = neg(v)
    """)
    branch = next(node for node in graph.nodes if node.kind == "prim::If")
    assert len(branch.outputs) == 2


def test_the_layout_of_what_a_branch_passes_on_may_be_asked_for():
    text = program("""
        -> r, f
        b = add_(a, 1); prim.If(q)
        with block(): w = add_(a, 2); yield
        with block(): yield
        copy = clone(a); r = reshape(add_(copy, 1), [3, 2]); f = add_(copy, 2)
    """)
    before, graph = parse_graph(text), parse_graph(text)
    run_passes(graph, "remove-mutation")
    assert kinds(graph).count("add_") == 2  # nobody knows whether %r is a view of %copy
    for q in (False, True):
        assert_same_results(before, graph, X, Y, 0, q)


def test_memory_made_in_a_loop_is_anothers_each_iteration():
    graph = removed("""
        -> r
        r = prim.Loop(n, True, y)
        with block(i=int, p=Tensor): c = clone(p); w = add_(select(c, 0, 0), 1); yield True, c
    """)
    (loop,) = [node for node in graph.nodes if node.blocks]
    assert len(loop.outputs) == 1, "it need not be carried"


def test_onnx_loops_carry_too():
    text = typed_ir("""
        x: Float(2, 3); m: Long() -> z, r
        a = Softmax(x); r = Loop(m, None, x)
        with block(i=Long(), c=Bool(), p=Float(2, 3)): s = Add(p, Exp_(a)); yield c, s
        z = Relu_(a)
    """)
    graph = without_writes(text, *((X, np.array(iterations)) for iterations in (0, 1, 3)))
    assert "Exp" in kinds(graph) and "Relu" in kinds(graph)


def test_undoes_in_place():
    text = typed_ir("""
        x: Float(2, 3); n: int -> l
        t: bool = prim.Constant(value=1); a = Softmax(x); l = prim.Loop(n, t, Exp(a))
        with block(i=int, p=Float(2, 3)): q = Neg(p); yield t, q
    """)
    before, graph = parse_graph(text), parse_graph(text)
    run_passes(graph, "in-place")
    assert kinds(graph) == ["Softmax", "Exp_", "Loop", "Neg_"]
    run_passes(graph, "remove-mutation,dce")
    assert [k for k in kinds(graph) if k != "Identity"] == ["Softmax", "Exp", "Loop", "Neg"]
    assert_same_results(before, graph, X, 3)


def test_undoes_in_place_of_what_one_of_two_values_is():
    """Nobody is certain which memory is written, but nobody looks at it again."""
    text = typed_ir("x: Float(2, 3); q: bool", "a = Softmax(x); b = Exp(x); c = a if q else b; e = Relu(Neg(c))", "e")
    before, graph = parse_graph(text), parse_graph(text)
    run_passes(graph, "in-place")
    assert kinds(graph)[-2:] == ["Neg_", "Relu_"]
    run_passes(graph, "remove-mutation")
    assert kinds(graph) == kinds(before)
    for choice in (False, True):
        assert_same_results(before, graph, X, choice)


# -- what only may share -------------------------------------------------------


STAYS = """
== under a result that may be a copy | %v, which may share or hold its memory, is used after it is written
-> v
v = reshape(a, [3, 2]); w = add_(a, 1)

== under a result that may be a copy, once more | %v may share memory with %a, but need not
-> a
v = reshape(a, [3, 2]); w = add_(v, 1)

== under a list that changes | which may share or hold its memory, is used after it is written
-> b
l: "Tensor[]" = prim.ListConstruct(a); m: "Tensor[]" = append(l, y); w = add_(a, 1); b = cat(l, 0)

== under a list that was there before | is used before and after it is written
-> c
l: "Tensor[]" = prim.ListConstruct(y); b = relu(x); m: "Tensor[]" = append(l, b); w = add_(b, 1); c = cat(l, 0)

== where the last iteration may have left it | may share memory with %
# %p may be what the last iteration wrote into; it is read after this iteration has written.
-> r
r = prim.Loop(n, True, y)
with block(i=int, p=Tensor): b = neg(p); w = add_(b, 1); c = b if q else p; z = mul_(c, 2); yield True, c

== where a loop reads what at first may be it | %p, which may share or hold its memory, is used after it is written
-> r, a
r = prim.Loop(n, True, a)
with block(i=int, p=Tensor): w = mul_(a, 2); s = neg(p); yield True, s

== under what is the memory on one path | %c, which may share or hold its memory, is used after it is written
-> c, a
b = clone(y); c = a if q else b; w = mul_(a, 2)

== where one of several uncertain writes may reach it | %c may share memory with %a, but need not
-> row, a, b, d, e
b = clone(y); d = clone(y); e = clone(y); row = select(a, 0, 1); w = mul_(row, 2); c = a if q else b; u = add_(c, 1)
f = d if q else e; v = add_(f, 1)

== under other bits of the same memory | %v, which may share or hold its memory, is used after it is written
-> v, w
v = view(a, 3); w = mul_(a, 2)

== what one of two values is | %c may share memory with %a, but need not
-> a, b
b = clone(y); c = a if q else b; w = add_(c, 1)

== inputs | memory that the graph did not allocate
-> w
w = add_(x, 1)

== what changes shapes or is random | no functional form
-> a
w = t_(a)

== what changes shapes or is random, once more | no functional form
-> a
w = uniform_(a)

== an expanded tensor | cannot be propagated to its base
-> a
w = fill_(expand(a, [2, 2, 3]), 1)

== a view whose place may move | %v may share memory with %a, but need not
-> a
sizes = prim.ListConstruct(2); v = view(a, sizes); more: "int[]" = append(sizes, 1); w = add_(v, 1)

== a list of the caller | %l, which may share or hold its memory
l: Tensor[]; x: Tensor -> w
b = relu(x); m: "Tensor[]" = append(l, b); w = neg_(b)

== a list of the caller that is all it gives | %l, which may share or hold its memory
l: Tensor[]; n: int[] -> w
b = ones(n, None, None, None, None); m: "Tensor[]" = append(l, b); w = neg_(b)

== inside a loop that stacks results | a loop that has scan outputs
x: Float(2); n: Long() -> a, s
a: Float(2) = Neg(x); s: "Float(*, 2)" = Loop(n, True)
with block(i=Long(), c=Bool()): w: Float(2) = Add_(a, x); u: Float(2) = Neg(w); yield c, u

== where in-place would write over the other operand | %c may share memory
x: Float(2, 3); q: bool -> w, z
a: Float(2, 3) = Softmax(x); b: Float(2, 3) = Relu(x); d: Float(2, 3) = Exp(x); c: Float(2, 3) = a if q else b
w: Float(2, 3) = Add_(c, d); z: Float(2, 3) = Neg(c)

== inside a scan | written inside onnx::Scan
x: Float(2, 3) -> s
a: Float(3) = Softmax([0.0, 0.0, 0.0]); s: Float(3) = Scan([0.0, 0.0, 0.0], x, num_scan_inputs=1)
with block(state=Float(3), p=Float(3)): y: Float(3) = Exp_(a); z: Float(3) = Add(state, y); yield z
"""


@pytest.mark.parametrize(("body", "why"), cases(STAYS))
def test_writes_stay(body, why):
    stays(body, why)


# -- what is not the graph's, or has no functional form ------------------------


def test_not_what_unknown_code_writes():
    graph = parse_graph(
        program("""
        -> w
        u = my.op(a); w = add_(a, 1)
    """)
    )
    PassManager("remove-mutation").run(graph)
    assert "add_" in kinds(graph)


def views_of_views(outputs: str, count: int, *body: str) -> str:
    views = [f"v{i + 1} = t(v{i})" for i in range(count)]
    return "\n".join([f"-> {outputs}", "v0 = alias(a)", *views, *body])


def test_a_write_through_very_many_views():
    graph = removed(views_of_views("a, v100", 100, "w = relu_(v100)"))
    assert len(kinds(graph)) <= 400


@pytest.mark.parametrize(
    "body",
    [
        [f"w{i} = mul_(v{i}, 2)" for i in range(1, 101)],
        [f"w{i} = mul_(v{100 * (i % 2)}, 2)" for i in range(100)],
        [f"w{i} = relu_(a); r{i} = neg(v100)" for i in range(100)],
    ],
    ids=["each", "the first and the last", "read"],
)
def test_not_where_views_of_very_many_views_would_be_taken_anew_for_each_write(body):
    stays(views_of_views("a", 100, *body), "too many views of views")


# -- names, functions, cost ----------------------------------------------------


def test_outputs_keep_their_names():
    graph = removed("""
        -> u, a, w
        w = add_(a, 1); u = relu_(w)
    """)
    assert [v.name for v in graph.outputs] == ["u", "a", "w"]


def test_outputs_that_are_one_value_stay_one():
    graph = removed("""
        -> a, w, a
        w = add_(a, 1)
    """)
    assert [v.name for v in graph.outputs] == ["a", "w", "a"]


def test_functions_keep_what_their_results_share():
    """The caller writes into one result of f and reads the other."""
    module = ir_module("""
        x: Tensor -> a, b
        f: Function = prim.Constant(name="f"); a, b = prim.CallFunction(f, x); w = relu_(b)

        f | x: Tensor -> w, t
        a = neg(x); t = t(a); w = add_(a, 1)
    """)
    before = module.copy()
    run_passes(module, "remove-mutation")
    assert "add_" not in kinds(module.graphs["f"])
    assert_same_results(before, module, X)


def test_the_optimisation_limit_holds():
    graph = parse_graph(program("-> a, b\nb = clone(x); v = neg_(a); w = neg_(b)"))
    ctx = PassContext()
    ctx.limit = 1
    assert RemoveMutation().run(graph, ctx)
    assert sorted(k for k in kinds(graph) if k.startswith("neg")) == ["neg", "neg_"]


def test_long_chains_are_linear():
    graph = Graph()
    b = Builder(graph)
    x = graph.add_input(types.TENSOR)
    value = first = b.op("aten::clone", x)
    for _ in range(3000):
        value = b.op("aten::neg_", value)
    graph.set_outputs([first])
    report = PassManager("remove-mutation").run(graph)
    assert report.stats["remove-mutation.removed"] == 3000
    assert kinds(graph) == ["clone", *["neg"] * 3000]


def test_writes_stay_where_unknown_code_may_look():
    """What the pass in-place would make again is not taken back then: copies of the graph do not know of it."""
    graph = typed_graph("x: Float(2, 3)", "y = Relu_(Softmax(x)); z = Exp(y)", "z")
    for unknown in (True, False):
        program = graph.copy()
        ctx = PassContext(program.module)
        db = ctx.alias_db(program)
        if unknown:
            db.set_wildcard(program.value("y"))
        RemoveMutation().run(program, ctx)
        assert ("Relu_" in kinds(program)) is unknown
        db.check()


def test_declarations_of_values_that_are_gone_are_gone():
    graph = ir_graph("x: Float(2, 3)", "a: Float(2, 3) = Softmax(x); b: Float(2, 3) = Exp(a)", "a")
    db = analyze(graph)
    node = graph.value("b").node
    db.set_wildcard(graph.value("b"))
    node.erase()
    db.refresh()
    assert not db.declares_unknown()
    db.check()


@pytest.mark.parametrize("argument", ["Tensor(a -> *)", "Tensor(a -> *)[]", "Tensor?(a -> *)"])
def test_writes_to_what_unknown_code_knows_stay(argument):
    """What it gives back afterwards shows them."""
    name = f"test.known::Keep{len(argument)}"
    register(operator_of(f"{name}({argument} x) -> ()", effects=Effects.SIDE_EFFECT))
    register(operator_of("test.known::Recall() -> Tensor(*)", effects=Effects.SIDE_EFFECT))
    taken = "l" if "[]" in argument else "v"
    graph = ir_graph(f"""
        x: Float(3) -> r
        v = tanh(x); l: "Tensor[]" = prim.ListConstruct(v); {name.replace("::", ".")}({taken})
        w = mul_(v, 0.5); r = test.known.Recall()
    """)
    report = run_passes(graph, "remove-mutation")
    assert "mul_" in kinds(graph)
    assert any("the memory may have escaped to unknown code" in note.reason for note in report.remarks)
