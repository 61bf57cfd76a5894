"""What containers hold, loops carry or nothing is known of: the work that it takes is counted, as in `test_growth`."""

from functools import partial

import pytest

from benchmarks import families, work
from irc.alias import analyze
from irc.ir import parse_graph
from irc.passes import PassManager
from tests.alias.test_scale import lines

PASSES = ["cse", "dce", "in-place", "remove-mutation", "reorder", "fuse", "canonicalize"]


@pytest.mark.covering(1)
@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("family", ["wide-tuple", "appended", "sequences", "shift", "types"])
def test_passes_are_linear(family: str, name: str) -> None:
    counts: list[int] = []
    for n in (250, 1000):
        graph = parse_graph(families.text(family, n))
        counts.append(lines(partial(PassManager(name).run, graph)))
    assert counts[1] <= 4.6 * counts[0], counts


@pytest.mark.covering(1)
@pytest.mark.parametrize("name", ["cse", "in-place", "remove-mutation", "fuse"])
@pytest.mark.parametrize("family", ["shift-written", "extended", "tuples", "pieces"])
def test_passes_on_what_is_written_in_containers_and_loops_are_linear(family: str, name: str) -> None:
    counts = [lines(partial(PassManager(name).run, parse_graph(families.text(family, n)))) for n in (250, 1000)]
    assert counts[1] <= 4.6 * counts[0], counts


def test_unused_functions_are_not_looked_for_after_each_that_changes() -> None:
    counts = [lines(partial(PassManager("inline").run, work.helpers(n))) for n in (250, 1000)]
    assert counts[1] <= 4.3 * counts[0], counts


@pytest.mark.parametrize("name", ["cse", "in-place", "inline", "fuse"])
def test_passes_on_functions_that_call_each_other_are_linear(name: str) -> None:
    counts = [lines(partial(PassManager(name).run, work.cycle(n))) for n in (600, 2400)]
    assert counts[1] <= 4.6 * counts[0], counts


@pytest.mark.parametrize("element", ["Tensor?", "Any", "Union(Tensor, int)"])
def test_types_that_all_overlap_are_linear(element: str) -> None:
    """Beyond some number they count as one."""
    counts: list[int] = []
    for n in (250, 1000):
        text = families.text("types", n).replace("Tensor", element).replace("int", "int?")
        counts.append(lines(partial(analyze, parse_graph(text))))
    assert counts[1] <= 4.3 * counts[0], counts


def test_what_is_written_the_other_way_round_is_not_looked_for_writer_by_writer() -> None:
    counts: list[int] = []
    for n in (250, 1000):
        graph = parse_graph(families.text("in-place", n))
        db, nodes = analyze(graph), list(graph.nodes)
        value = graph.value("v0")
        assert db.writes_between(value, nodes[1], nodes[-1])
        counts.append(lines(partial(db.writes_between, value, nodes[-1], nodes[1])))
    assert counts[1] == counts[0], counts


@pytest.mark.parametrize("around", ["prim::Loop", "prim::If"])
def test_what_is_written_inside_of_other_nodes_is_not_looked_for_writer_by_writer(around: str) -> None:
    counts: list[int] = []
    for n in (100, 400):
        block = "block0(%i : int):" if around == "prim::Loop" else "block0():"
        inputs, end = ("%n, %c", "-> (%c)") if around == "prim::Loop" else ("%c", "-> ()\n    block1():\n      -> ()")
        text = ["graph(%x : Tensor, %n : int, %c : bool):", "  %b : Tensor = aten::neg(%x)"]
        text += [f"   = {around}({inputs})", f"    {block}", "      %first : Tensor = aten::neg(%b)"]
        text += [f"      %w{i} : Tensor = aten::relu_(%b)" for i in range(n)]
        text += ["      %last : Tensor = aten::neg(%b)", f"      {end}", "  %after : Tensor = aten::neg(%b)"]
        graph = parse_graph("\n".join([*text, "  return (%after)", ""]))
        db = analyze(graph)
        first, last, after = (graph.value(name).node for name in ("first", "last", "after"))
        assert first is not None and last is not None and after is not None
        asked = graph.value("b")
        assert db.writes_between(asked, last, first) == (around == "prim::Loop")
        assert db.writes_between(asked, first, after) and db.writes_between(asked, first, last)
        ask = [partial(db.writes_between, asked, *nodes) for nodes in ((last, first), (first, after), (first, last))]
        counts.append(sum(map(lines, ask)))
    assert counts[1] <= counts[0] + 8, counts


def test_of_sets_that_are_written_only_those_that_meet_what_is_asked_about_are_looked_at() -> None:
    counts: list[int] = []
    for n in (250, 1000):
        text = ["graph(%x : Tensor, %c : bool):"]
        for i in range(n):
            text += [f"  %a{i} : Tensor = aten::neg(%x)", f"  %b{i} : Tensor = aten::neg(%x)"]
            text += [f"  %r{i} : Tensor = prim::If(%c)", f"    block0():\n      -> (%a{i})", "    block1():"]
            text += [f"      -> (%b{i})", f"  %w{i} : Tensor = aten::relu_(%r{i})"]
        graph = parse_graph("\n".join([*text, "  return (%w0)", ""]))
        db, nodes, value = analyze(graph), list(graph.nodes), graph.value("a1")
        assert db.writes_between(value, nodes[0], nodes[-1]) and not db.writes_between(value, nodes[9], nodes[-1])
        ask = [partial(db.writes_between, value, nodes[9], nodes[-1]), partial(db.has_writers, value)]
        counts.append(sum(map(lines, ask)))
    assert counts[1] == counts[0], counts
