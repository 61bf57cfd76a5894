"""Concat onto what comes back: where it becomes ``irc::append_``, where not and why, and the way back."""

import numpy as np
import pytest

from irc.alias import AliasDb
from irc.ir import Node, parse_graph
from irc.passes import Growable, PassContext, PassManager
from irc.passes.kv_cache import concatenate_instead
from tests.graphs import ir, typed_ir
from tests.passes.helpers import (
    assert_becomes,
    assert_same_results,
    assert_unchanged,
    kinds,
    run_passes,
    transform,
    transform_module,
)

CACHE = typed_ir("past: Float(1, 2, *, 4); new: Float(1, 2, 1, 4)", "present = Concat(past, new, axis=2)", "present")

APPENDED = CACHE.replace("onnx::Concat", "irc::append_")

LOOP = ir("""
    n: Long(); start: Float(*); x: Float(1) -> end
    go: Bool() = prim.Constant(value={1}); first: "Float(*)" = Relu(start); end: "Float(*)" = Loop(n, go, first)
    with block(i=Long(), c=Bool(), held="Float(*)"): longer: "Float(*)" = Concat(held, x, axis=0); yield c, longer
""")

BRANCH = ir("""
    use: Bool(); past, x: Float(*) -> present
    present: "Float(*)" = prim.If(use)
    with block(): a: "Float(*)" = Concat(past, x, axis=0); yield a
    with block(): yield x
""")

F = np.float32


# -- where ------------------------------------------------------------------------


def test_a_cache_that_the_graph_is_given_and_gives_back():
    assert_becomes(CACHE, "growable", APPENDED)
    past, new = np.ones((1, 2, 3, 4), F), np.zeros((1, 2, 1, 4), F)
    assert_same_results(parse_graph(CACHE), transform(CACHE, "growable"), past, new)


def test_what_a_loop_carries():
    assert_becomes(LOOP, "growable", LOOP.replace("onnx::Concat", "irc::append_"))
    assert_same_results(
        parse_graph(LOOP), transform(LOOP, "growable"), np.int64(5), np.array([-1, 2], F), np.ones(1, F)
    )


def test_a_capture_in_a_branch():
    assert_becomes(BRANCH, "growable", BRANCH.replace("onnx::Concat", "irc::append_"))


def test_the_operand_may_be_used_later_for_appending_changes_nothing_of_it():
    text = typed_ir("past, x: Float(*)", "present = Concat(past, x, axis=0); sum = ReduceSum(past)", "present, sum")
    assert_becomes(text, "growable", text.replace("onnx::Concat", "irc::append_"))


def test_what_is_extended_twice():
    text = typed_ir("past: Float(*); x: Float(1)", "present = Concat(Concat(past, x, axis=0), x, axis=0)", "present")
    assert_becomes(text, "growable", text.replace("onnx::Concat", "irc::append_"))


# -- where not --------------------------------------------------------------------


def test_what_a_loop_makes_anew_in_each_iteration_stays():
    made = "%made : Float(1) = onnx::Relu(%x)\n      %longer : Float(*) = onnx::Concat[axis=0](%made, %held)"
    assert_unchanged(LOOP.replace("%longer : Float(*) = onnx::Concat[axis=0](%held, %x)", made), "growable")


@pytest.mark.parametrize("written", ["past", "present"])
def test_memory_that_is_written_is_not_shared(written):
    text = CACHE.replace("  return", f"  %z : Float(1, 2, *, 4) = onnx::Relu_(%{written})\n  return")
    graph = parse_graph(text)
    notes = run_passes(graph, "growable").remarks
    assert ["written in place" in note.reason for note in notes] == [True]
    assert "append_" not in kinds(graph)


def test_a_function_keeps_what_it_gives_apart():
    text = """
graph main(%past : Float(*), %x : Float(*)):
  %f : Function = prim::Constant[name="f"]()
  %y : Float(*) = prim::CallFunction(%f, %past, %x)
  return (%y)

graph f(%past : Float(*), %x : Float(*)):
  %present : Float(*) = onnx::Concat[axis=0](%past, %x)
  return (%present)
"""
    module = transform_module(text, "growable")
    assert "append_" not in [k for graph in module.graphs.values() for k in kinds(graph)]
    assert kinds(transform_module(text, "inline,growable").main) == ["append_"]


# -- torch.cat ---------------------------------------------------------------------

CAT = ir("""
    past, x: Float(*, *) -> both
    dim: int = prim.Constant(value=-1); parts: "Tensor[]" = prim.ListConstruct(past, x)
    y: "Float(*, *)" = cat(parts, dim); both: "(Tensor, Tensor)" = prim.TupleConstruct(x, y)
""")

CAT_APPENDED = ir("""
    past, x: Float(*, *) -> both
    dim: int = prim.Constant(value=-1); y: "Float(*, *)" = irc.append_(past, x, axis=-1)
    both: "(Tensor, Tensor)" = prim.TupleConstruct(x, y)
""")


def test_cat_of_equal_types_that_leaves_in_a_tuple():
    assert_becomes(CAT, "growable", CAT_APPENDED)
    three = CAT.replace("(%past, %x)\n  %y", "(%past, %x, %x)\n  %y")
    assert kinds(transform(three, "growable")) == ["Concat", "append_", "TupleConstruct"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("%x : Float(*, *)", "%x : Long(*, *)", "element types"),  # it is converted
        ("%x : Float(*, *)", "%x : Float", "element types"),  # and an empty vector left out
        ("%past : Float(*, *)", "%past : Tensor", "element types"),
        ("(%past : Float(*, *), %x : Float(*, *))", "(%past : Tensor(*, *), %x : Tensor(*, *))", "element types"),
        ("value=-1", "value=2", "element types"),  # which is not an axis: the run says so
        ("  return", "  %z : Float(*, *) = aten::relu_(%y)\n  return", "written in place"),
        ("  return", "  %z : Float = aten::view_as(%y, %x)\n  return", "strides"),
        ("  return", "  %t : Float = aten::t(%past)\n  %z : Float = aten::view_as(%t, %x)\n  return", "strides"),
        ("  return", "  %t : Float = aten::relu(%y)\n  %z : int[] = aten::stride(%t)\n  return", "strides"),
        (
            "  return",
            "  %q : bool = aten::is_complex(%x)\n  %t : Float = prim::If(%q)\n    block0():\n      -> (%x)\n"
            "    block1():\n      %u : Float = aten::relu(%y)\n      -> (%u)\n"
            "  %z : int[] = aten::stride(%t)\n  return",
            "strides",
        ),
        (
            "  return",
            "  %l : Tensor[] = prim::ListConstruct()\n  %m : Tensor[] = aten::append(%l, %y)\n  %a, %b = "
            "prim::ListUnpack(%l)\n  %z : Float = aten::view_as(%a, %b)\n  return",
            "strides",
        ),
        (
            "  return (%both)\n",
            "  %z : Tensor = prim::FusionGroup_0(%y, %x)\n  return (%both)\nwith prim::FusionGroup_0 = "
            "graph(%a : Tensor, %b : Tensor):\n  %z : Tensor = aten::view_as(%a, %b)\n  return (%z)\n",
            "strides",
        ),
        (
            "  return (%both)\n",
            "  %z : Tensor = prim::FusionGroup_0(%x)\n  return (%both)\nwith prim::FusionGroup_0 = "
            "graph(%a : Tensor):\n  %z : Tensor = aten::t_(%a)\n  return (%z)\n",
            "element types",
        ),
    ],
)
def test_cat_that_may_mean_more_than_concat_stays(old, new, reason):
    graph = parse_graph(CAT.replace(old, new))
    notes = run_passes(graph, "growable").remarks
    assert [reason in note.reason for note in notes] == [True]
    assert "append_" not in kinds(graph)


@pytest.mark.parametrize(
    "text",
    [
        CAT.replace("  return", "  %z : Tensor[] = aten::append(%parts, %x)\n  return"),
        CAT.replace("prim::Constant[value=-1]()", "aten::dim(%x)"),
    ],
)
def test_lists_that_others_have_and_dimensions_that_vary_are_not_looked_into(text):
    assert_unchanged(text, "growable")


def test_what_is_laid_out_anew_may_be_asked_for_strides():
    asked = "  %z : Float(*, *) = aten::mm(%y, %x)\n  %w : Float = aten::view_as(%z, %x)\n  return"
    assert "append_" in kinds(transform(CAT.replace("  return", asked), "growable"))


# -- what follows ------------------------------------------------------------------


def test_results_that_may_be_a_kept_operand_are_not_overwritten():
    text = typed_ir("past, x: Float(*)", "present = Concat(past, x, axis=0); y = Relu(present)", "y, present, past")
    assert "Relu_" not in kinds(transform(text, "growable,in-place"))


# -- the way back ------------------------------------------------------------------


@pytest.mark.parametrize("text", [CACHE, LOOP, BRANCH])
def test_remove_mutation_is_the_way_back(text):
    assert_becomes(text, "growable,remove-mutation", text)


def test_what_a_limit_forbids_is_not_done():
    graph = parse_graph(CACHE)
    ctx = PassContext()
    ctx.limit = 0
    assert not Growable().run(graph, ctx)
    assert kinds(graph) == ["Concat"]


@pytest.mark.parametrize("shape", ["a chain", "side by side"])
def test_work_grows_with_the_number_of_caches(shape, spy):
    asked = spy(AliasDb, "location_set")
    counts = []
    for n in (50, 200):
        olds = ["%p0", *(f"%q{i}" for i in range(n - 1))] if shape == "a chain" else [f"%p{i}" for i in range(n)]
        lines = [f"  %q{i} : Float(*) = onnx::Concat[axis=0]({old}, %x)" for i, old in enumerate(olds)]
        inputs = ", ".join(f"%p{i} : Float(*)" for i in range(n))
        results = ", ".join(f"%q{i}" for i in range(n))
        graph = parse_graph(f"graph({inputs}, %x : Float(1)):\n" + "\n".join(lines) + f"\n  return ({results})")
        asked.reset_mock()
        PassManager("growable").run(graph)
        assert kinds(graph) == ["append_"] * n
        counts.append(asked.call_count)
    assert counts[1] <= 5 * counts[0]


def test_the_end_of_a_graph_gets_its_results_at_once(spy):
    """It has one input for each of them, which are all copied where one is replaced."""
    replaced = spy(Node, "replace_input")
    text = "graph({}, %x : Float(1)):\n{}\n  return ({})\n".format(
        ", ".join(f"%p{i} : Float(*)" for i in range(20)),
        "\n".join(f"  %q{i} : Float(*) = onnx::Concat[axis=0](%p{i}, %x)" for i in range(20)),
        ", ".join(f"%q{i}" for i in range(20)),
    )
    assert_becomes(text, "growable", text.replace("onnx::Concat", "irc::append_"))
    graph = transform(text, "growable")
    assert concatenate_instead(graph, PassContext())
    assert kinds(graph) == ["Concat"] * 20 and [v.name for v in graph.outputs] == [f"q{i}" for i in range(20)]
    assert not replaced.called
