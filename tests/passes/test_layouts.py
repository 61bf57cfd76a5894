"""Passes keep how tensors lie in memory where something sees it."""

import numpy as np
import pytest

import irc
from irc.alias import analyze
from irc.ir import parse_graph, parse_module
from irc.passes.layouts import Contiguity, Layouts
from irc.runtime.plan import lower
from tests.graphs import ir, ir_graph, ir_module
from tests.passes.helpers import kinds, run_passes
from tests.programs.interpreter import interpret

WRITTEN = "t = t(x); y = add(t, 1, 1); m = gt(y, 2); w = masked_fill_(y, m, -1)"


def graph(body: str, outputs: str = "y"):
    return ir_graph("x: Tensor", f"{WRITTEN}\n{body}", outputs)


SEEN = {
    "stride": "s = stride(y)",
    "is_contiguous": "s: bool = is_contiguous(y, 0)",
    "as_strided": "s = as_strided(y, [3], [2], None)",
    "view": "s = view(y, [3])",
    "of a view": "s = stride(select(y, 0, 1))",
    "of a copy": "s = stride(clone(y, None))",
    "of a result": "s = stride(neg(mul(y, x)))",
    "in a list": 'l: "Tensor[]" = prim.ListConstruct(x, y); s = stride(__getitem__(l, 0))',
    "put into a list": (
        'l: "Tensor[]" = prim.ListConstruct(); a: "Tensor[]" = append(l, y); s = stride(__getitem__(l, 0))'
    ),
    "of a branch": (
        "q: bool = is_complex(x); r = prim.If(q)\nwith block(): yield x\n"
        "with block(): n = neg(y); yield n\ns = stride(r)"
    ),
    "unknown code": "s = somebodys.operator(y)",
    "a copy that is written": "s = flatten(y, 0, -1); u = add_(s, 1, 1)",
}
NOT_SEEN = {
    "a copy that nothing writes": "s = flatten(y, 0, -1)",
    "another tensor": "s = stride(x)",
    "what is laid out anew": "s = stride(mm(y, y))",
    "what is contiguous": "s = stride(clone(y, 0))",
    "sizes": 's: "int[]" = size(y)',
}


@pytest.mark.parametrize("name", SEEN)
def test_what_is_seen(name):
    g = graph(SEEN[name], "y, s")
    assert Layouts(g, analyze(g), {}).is_seen([g.value("y")])


@pytest.mark.parametrize("name", NOT_SEEN)
def test_what_is_not_seen(name):
    g = graph(NOT_SEEN[name], "y, s")
    assert not Layouts(g, analyze(g), {}).is_seen([g.value("y")])
    run_passes(g, "remove-mutation")
    assert "masked_fill" in kinds(g) and "overwrite" not in kinds(g)


@pytest.mark.parametrize("caller", ["stride", "neg"])
def test_functions_whose_callers_look(caller):
    module = ir_module(f"""
        x: Tensor -> y
        f: Function = prim.Constant(name="f"); y = prim.CallFunction(f, x); s = {caller}(y)

        f | x: Tensor -> y
        {WRITTEN}
    """)
    f = module.graphs["f"]
    assert Layouts(f, analyze(f, module), {}).is_seen([f.value("y")]) is (caller == "stride")


CERTAIN = {
    "clone(y, 0)": True,
    "clone(y, None)": False,
    "mm(y, y)": False,
    "contiguous(y, 0)": True,
    "add(c, 2, 1)": True,
    "add(c, c, 1)": True,
    "add(c, y, 1)": False,
    "t(c)": False,
    "flatten(c, 0, -1)": True,
    "select(c, 0, 1)": True,
    "select(c, 1, 1)": False,
    "slice(c, 0, 1, None, 1)": True,
    "slice(c, 0, 1, None, 2)": False,
    "zeros_like(c, None, None, None, None, None)": True,
    "zeros_like(y, None, None, None, None, None)": False,
    "zeros_like(y, None, None, None, None, 0)": True,
    "relu_(c)": True,
    "tril(y, 0)": True,
}


@pytest.mark.parametrize("made", CERTAIN)
def test_what_is_certainly_contiguous(made):
    g = graph(f"c = clone(x, 0); v = {made}", "v")
    assert Contiguity(lambda value: False).is_certain(g.value("v")) is CERTAIN[made]
    assert not Contiguity(lambda value: True).is_certain(g.value("v"))
    if CERTAIN[made]:
        (found,) = lower(g).run([np.asfortranarray(np.arange(9, dtype=np.float32).reshape(3, 3))])
        assert found.flags.c_contiguous


def test_contiguity_of_deep_chains_is_found_without_recursion():
    lines = "\n".join(f"c{i + 1} = neg(c{i})" for i in range(5000))
    g = graph(f"c0 = clone(x, 0)\n{lines}", "c5000")
    assert Contiguity(lambda value: False).is_certain(g.value("c5000"))


@pytest.mark.covering(2)
@pytest.mark.parametrize("pipeline", ["constant-fold", "default", "remove-mutation,default"])
@pytest.mark.parametrize(
    "look",
    [
        "s = stride(v)",
        "s: bool = is_contiguous(v, 0)",
        "s = as_strided(v, [2], [1], None)",
        "s = stride(neg(v))",
        "s: int = storage_offset(v)",
    ],
)
@pytest.mark.parametrize("view", ["t(c)", "select(c, 1, 1)", "slice(c, 0, 1, 2)"])
def test_constants_that_are_looked_at_are_not_folded_into_others(view, look, pipeline):
    constant = "c: Float(3, 2) = prim.Constant(value=tensor([1., 2., 3., 4., 5., 6.]))"
    text = ir("x: Tensor", f"{constant}; v = {view}; {look}", "s")
    x = {"x": np.zeros(1, np.float32)}
    wanted = irc.compile(parse_module(text), passes="").run(x)["s"]
    found = irc.compile(parse_module(text), passes=pipeline).run(x)["s"]
    np.testing.assert_array_equal(found, wanted)


def test_tensors_with_gaps_are_not_written_instead_of_new_ones():
    text = ir("""
        x: Float(6); s: Float(3) -> c, b
        a: Float(3) = as_strided_scatter(as_strided(x, [3], [2], None), s, [3], [2], None); b: Float(3) = neg(a)
        c: "int[]" = stride(b)
    """)
    before, after = parse_graph(text), parse_graph(text)
    run_passes(after, "in-place")
    given = [np.arange(6, dtype=np.float32), np.ones(3, np.float32)]
    assert lower(after).run(given)[0] == lower(before).run(given)[0] == [1]


OPERANDS = """
negative: Float() = prim.Constant(value=tensor([-0.])); yes: Bool(1, 1) = prim.Constant(value=tensor([True]))
a: Float(6, 4) = neg(x); s: Float(4, 3) = slice(x, 0, 1, -1, 1); h: Float(2, 4) = slice(a, 0, 2, -1, 2)
c: Float(2, 3) = slice(h, 1, 1, None, 1); t: Float(4, 6) = t(x); u: Float(4, 6) = neg(t)
d: Float(2, 3) = as_strided(a, [2, 3], [1, 2], None); e: Float(2, 3) = neg(c)
"""
"""``c`` is a part of what the graph makes, ``d`` a view of it with gaps and the first axis the fastest one."""

NOTHING_TO_DO = [
    "Identity({})",
    "dropout({}, 0.5, False)",
    "Cast({}, to=1)",
    "CastLike({}, 1.0)",
    "Dropout({})",
    "Reshape({}, [2, 3])",
    "Flatten({}, axis=1)",
    "Expand({}, [2, 3])",
    "Tile({}, [1, 1])",
    "Concat({}, axis=0)",
    "Sum({})",
    "Max({})",
    "Transpose({}, perm=[0, 1])",
    "Slice({}, [0], [2])",
    "Pad({}, [0, 0, 0, 0])",
    "Split({}, num_outputs=1)",
    "Mul({}, 1.0)",
    "Add({}, negative)",
    "Where(yes, {}, negative)",
]
"""Operations on something."""
LOOKS = {
    "stride": "o = stride(r)",
    "stride of a result": "n: Float(2, 3) = neg(r); o = stride(n)",
    "is_contiguous": "o: bool = is_contiguous(r, 0)",
    "storage_offset": "o: int = storage_offset(r)",
    "as_strided": "o: Float(6) = as_strided(r, [6], [1], None)",
    "as_strided from the beginning": "o: Float(6) = as_strided(r, [6], [1], 0)",
    "a copy that is written": "f = flatten(r, 0, -1); g = add_(f, 1, 1); o = clone(r, None)",
}


def operated(body: str, outputs: str) -> str:
    """IR text of statements on `OPERANDS`."""
    return ir("x: Float(6, 4); w: Float(4, 6)", f"{OPERANDS}{body}", outputs)


def check_seen(body: str, *pipelines: str) -> None:
    """Fail unless ``body``, which returns what it sees of layouts, sees the same after each of ``pipelines``."""
    given = [np.arange(24, dtype=np.float32).reshape(6, 4), np.arange(24, dtype=np.float32).reshape(4, 6)]
    wanted = interpret(parse_graph(body), [x.copy() for x in given])
    for pipeline in pipelines:
        after = parse_graph(body)
        run_passes(after, pipeline)
        for found, expected in zip(lower(after).run([x.copy() for x in given]), wanted, strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=f"{pipeline}: {after}")


@pytest.mark.covering(1)
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("made", NOTHING_TO_DO)
def test_an_operator_that_does_nothing_but_lay_out_stays_where_that_is_seen(made, look):
    for v in "cd":
        body = operated(f"r: Float(2, 3) = {made.format(v)}; {LOOKS[look]}", "o")
        check_seen(body, "canonicalize", "default")


def test_a_scale_is_not_folded_into_a_product_whose_layout_is_seen():
    scaled = """
weights: Float(6, 2) = prim.Constant(value=tensor([1., 2., 3., 4., 5., 6., 7., 8., 9., 0., 1., 2.]))
factors: Float(2) = prim.Constant(value=tensor([2., 4.]))
p: Float(4, 2) = Gemm(w, weights); r: Float(4, 2) = Mul(p, factors)
"""
    for look, is_folded in (("stride(x)", True), ("stride(r)", False)):
        body = operated(f"{scaled}o = {look}", "o, r")
        graph = parse_graph(body)
        run_passes(graph, "conv-bn-fold")
        assert ("Mul" not in kinds(graph)) is is_folded
        check_seen(body, "conv-bn-fold", "default")


OVERWRITING = {
    "Add(u, w)": "onnx::Add",
    "Add(w, u)": "onnx::Add",
    "Mul(u, 1.0)": "onnx::Mul",
    "Where(more, u, w)": "onnx::Where",
    "mul(u, w)": "aten::mul_",
    "relu(u)": "aten::relu_",
    "irc.slice_scatter(u, d, starts=[0, 0], steps=[1, 1])": "irc::slice_scatter",
    "irc.overwrite(u, w)": "irc::overwrite_",
}
"""Operators whose result lies as ``w`` does, or as ``u``, which they could write over -> what they are in place."""


@pytest.mark.parametrize("made", OVERWRITING)
def test_a_result_is_written_over_an_operand_only_if_it_lies_so_where_that_is_seen(made):
    body = operated(f"more: Bool(4, 6) = Greater(w, 1.0); r: Float(4, 6) = {made}; o = stride(r)", "o, r")
    check_seen(body, "in-place", "default", "in-place,default")
    graph = parse_graph(body)
    run_passes(graph, "in-place")
    found = graph.value("r").node
    assert found is not None and found.kind == OVERWRITING[made]


@pytest.mark.parametrize("kind", ["relu", "Relu", "neg", "Neg"])
@pytest.mark.parametrize("rows", [4, 400])
def test_a_part_of_a_larger_tensor_is_no_place_for_a_result_whose_storage_is_seen(kind, rows):
    body = ir(f"""
        x: Float({rows}, 30) -> o, p
        a: Float({rows}, 30) = neg(x); c: Float({rows - 1}, 30) = slice(a, 0, 1, None, 1)
        r: Float({rows - 1}, 30) = {kind}(c); o: int = storage_offset(r); p: Float(6) = as_strided(r, [6], [1], 0)
    """)
    x = np.linspace(-1, 1, rows * 30, dtype=np.float32).reshape(rows, 30)
    wanted = interpret(parse_graph(body), [x.copy()])
    for pipeline in ("", "in-place", "default"):
        (module := parse_module(body)).verify()
        found = irc.compile(module, passes=pipeline).run({"x": x})
        assert found["o"] == wanted[0] == 0
        np.testing.assert_array_equal(found["p"], wanted[1])
