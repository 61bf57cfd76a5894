"""The designs that irc's alias analysis replaces answer as it does, and are slow for the reasons that are given."""

import importlib.util
import json
from pathlib import Path

import pytest
from hypothesis import given

from benchmarks import facts
from benchmarks.yolov3 import ladder, report
from benchmarks.yolov3.isomorphism import difference
from benchmarks.yolov3.ladder import RUNGS, climb
from benchmarks.yolov3.rungs.counters import PHASES, Counters, PhaseClock
from benchmarks.yolov3.rungs.fuser import RebuildingFuse
from benchmarks.yolov3.rungs.plain import DeferredDb, EagerDb, PlainDb
from irc.alias import AliasDb
from irc.fuser import Fuse
from irc.ir import Graph, Module, parse_module
from irc.passes import PassManager
from tests.alias.programs import ProgramBuilder, choices
from tests.effort import examples
from tests.graphs import ir

DESIGNS = (EagerDb, DeferredDb)

SMALL = ir("""
    s: __torch__.Net; x_1: Tensor; n: int -> h, l
    f0: Function = prim.Constant(name="layer"); yes: bool = prim.Constant(value=1)
    p: "__torch__.Layer" = prim.GetAttr(s, name="p"); q: "__torch__.Layer" = prim.GetAttr(s, name="q")
    a = prim.CallFunction(f0, p, x_1); b = prim.CallFunction(f0, q, a); res = add(a, b, 1)
    l: "Tensor[]" = prim.ListConstruct(res); u = prim.Loop(n, yes, res)
    with block(i=int, v=Tensor): w = mul(v, b); y = relu(w); m: "Tensor[]" = append(l, y); yield yes, y
    box = select(u, 0, 1); e = exp(box); t = sigmoid(e); put = copy_(box, t, yes); back = __getitem__(l, 0)
    g = neg(u); h = mul(g, back)

    layer | self: __torch__.Layer; x: Tensor -> t
    count = prim.GetAttr(self, name="count"); counted = add_(count, 1, 1)
    weight = prim.GetAttr(self, name="weight"); y = mul(x, weight)
    training: bool = prim.GetAttr(self, name="training"); z = prim.If(training)
    with block(): noise = mul(y, y); s = sigmoid(noise); yield s
    with block(): yield y
    r = leaky_relu(z, 0.1); t = tanh(r)
""")


def small() -> Module:
    return parse_module(SMALL)


@pytest.mark.parametrize("design", DESIGNS)
@examples(60)
@given(choices)
def test_designs_answer_alike_about_random_programs(design: type[PlainDb], chosen: list[int]) -> None:
    graph = ProgramBuilder(chosen).graph
    design(graph, None, Counters(), PhaseClock()).check()


@pytest.mark.parametrize("design", DESIGNS)
@examples(30)
@given(choices)
def test_designs_stay_right_while_passes_change_the_graph(design: type[PlainDb], chosen: list[int]) -> None:
    def analyze(graph: Graph, module: Module | None) -> AliasDb:
        db = design(graph, module, Counters(), PhaseClock())
        db.check_rewrites = True
        return db

    graph, by_irc = ProgramBuilder(chosen).graph, ProgramBuilder(chosen).graph
    PassManager("cse,dce,fuse", analyze=analyze).run(graph)
    PassManager("cse,dce,fuse").run(by_irc)
    assert difference(graph, by_irc) is None


@pytest.mark.parametrize("design", DESIGNS)
def test_designs_answer_alike_about_yolov3(design: type[PlainDb]) -> None:
    for subject in ladder.SUBJECTS.values():
        module = subject()
        assert module.main in module.graphs.values()
        for graph in module.graphs.values():
            design(graph, module, Counters(), PhaseClock()).check()


@examples(60)
@given(choices)
def test_fusing_with_rebuilds_fuses_the_same(chosen: list[int]) -> None:
    graphs = ProgramBuilder(chosen).graph, ProgramBuilder(chosen).graph
    for graph, fuse in zip(graphs, (Fuse(), RebuildingFuse())):
        PassManager([fuse]).run(graph)
    assert difference(*graphs) is None


@pytest.mark.parametrize("copies", [1, 3])
def test_rungs_end_alike_and_are_slow_for_the_anchors_reasons(copies: int) -> None:
    climbs = [climb(rung, ladder.repeat(small(), copies)) for rung in RUNGS]
    for found in climbs:
        assert difference(found.graph, climbs[-1].graph) is None
    assert sum(node.kind == "prim::FusionGroup" for node in climbs[-1].graph.walk()) > copies

    eager, early, deferred, memoised, in_place = (found.counters for found in climbs)
    assert min(eager.builds, early.builds, deferred.builds, memoised.builds) > 2 * in_place.builds
    assert early.rescans > deferred.rescans > memoised.rescans >= in_place.rescans
    assert early.visited > deferred.visited > memoised.visited > in_place.visited
    assert early.unions >= deferred.unions > memoised.unions >= in_place.unions


def test_work_grows_with_copies_only_where_it_is_repeated() -> None:
    """Rebuilding: more copies, more builds, each of more. Updating in place: one build, of more."""
    once, four_times = ([climb(rung, ladder.repeat(small(), n)).counters for rung in RUNGS] for n in (1, 4))
    for number in range(4):
        assert four_times[number].builds > 2 * once[number].builds
    assert four_times[4].builds == once[4].builds
    assert four_times[0].rescans > 16 * once[0].rescans


def test_copies_share_functions_and_nothing_else() -> None:
    module = small()
    before = len(list(module.main.walk()))
    repeated = ladder.repeat(small(), 3)
    repeated.main.verify()
    assert len(list(repeated.main.walk())) == 3 * before
    assert len(repeated.main.outputs) == 3 * len(module.main.outputs)
    assert repeated.graphs.keys() - {"main"} == module.graphs.keys() - {module.main.name}


def test_phases_are_all_there_is() -> None:
    clock = PhaseClock()
    with clock.phase("queries"), clock.phase("updates"):
        sum(range(100_000))
    assert clock.seconds["updates"] > clock.seconds["queries"] > 0
    assert clock.total() == pytest.approx(sum(clock.seconds.values()))
    found = climb(RUNGS[0], small())
    assert found.phases.keys() == set(PHASES)
    assert all(found.phases[phase] > 0 for phase in ("indices", "queries", "passes"))
    assert sum(found.phases.values()) == pytest.approx(found.seconds)
    assert climb(RUNGS[0], small(), clocked=False).phases["queries"] == 0


def test_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(facts, "OUT", tmp_path)
    monkeypatch.setattr(report, "OUT", tmp_path)
    monkeypatch.setitem(ladder.SUBJECTS, "small", small)
    report.run(["small"], [0, 2, 4], turns=1, copies=2)
    told = capsys.readouterr().out
    for part in ("YOLOv3 small, 2 in one graph", "PyTorch 144.6 times", "rebuilds", "constant-fold", "build-up"):
        assert part in told
    found = ladder.measure("small", [0, 2, 4], 1, 1)
    rows = [*report.rows_of("x", found)]
    assert len({row["name"] for row in rows}) == len(rows) == 3 + len(report.COUNTERS)
    assert [row["ratio"] is None for row in rows[:3]] == [False, False, True]
    assert rows[0]["ratio"] == pytest.approx(rows[2]["value"] / rows[0]["value"])
    kept = json.loads((tmp_path / "ladder-x2.json").read_text())
    assert kept["rows"][0].keys() == {"name", "value", "unit", "ratio"}
    assert [rung["rung"] for rung in kept["rungs"]["small"]] == [0, 2, 4]
    assert report.anchor_factor(found, 2) == pytest.approx(752.0 / 426.2)
    assert report.factor(found, 0) is None
    assert (tmp_path / "ladder-x2.png").exists() == (importlib.util.find_spec("matplotlib") is not None)


def test_rungs_that_end_differently_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ladder.SUBJECTS, "small", small)
    unfused = ladder.Rung("no fuser", 1.0, "inline,dce")
    monkeypatch.setattr(ladder, "RUNGS", (unfused, *RUNGS[1:]))
    with pytest.raises(AssertionError, match="rungs 0 and 4 end with different graphs"):
        ladder.measure("small", [0, 4], 1, 1)
