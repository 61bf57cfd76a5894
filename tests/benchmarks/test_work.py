"""Each of these families has the size asked for, and its pass finds work that grows with it."""

import gc
from collections.abc import Iterator

import pytest

import irc.compiler  # noqa: F401  # registers the passes
from benchmarks import growth, work
from irc.ir import Module
from irc.passes import PassManager, registry

COUNTED = {
    ("caches", "growable", "appends"): 2,
    ("numbers", "constant-fold", "folded"): 5,
    ("numbers", "constant-pool", "merged"): 5,
    ("convolutions", "conv-bn-fold", "folded"): 3,
    ("calls", "inline", "inlined"): 10,
    ("attributes", "freeze", "frozen"): 2,
    ("readers", "in-place", "in_place"): 2,
    ("functions", "cse", "merged"): 3,
    ("cycle", "cse", "merged"): 5,
    ("helpers", "inline", "inlined"): 3,
    ("helpers", "inline", "dropped"): 3,
    ("merges", "in-place", "in_place"): 3,
    ("merges", "remove-mutation", "removed"): 3,
    ("written", "remove-mutation", "removed"): 2,
}
"""Family, pass and what it counts -> how many nodes there are for each."""


@pytest.mark.parametrize(("family", "name", "counter"), COUNTED)
def test_the_pass_has_work(family: str, name: str, counter: str) -> None:
    each = COUNTED[family, name, counter]
    counts = [PassManager(name).run(work.FAMILIES[family](n)).stats[f"{name}.{counter}"] for n in (300, 600)]
    assert counts[1] - counts[0] == 300 // each


def test_all_families_are_counted() -> None:
    assert {family for family, _, _ in COUNTED} == work.FAMILIES.keys()


@pytest.mark.parametrize("family", work.FAMILIES)
def test_families_are_of_the_size_asked_for(family: str) -> None:
    made = work.FAMILIES[family](600)
    PassManager("inline").run(made)
    graphs = list(made.graphs.values()) if isinstance(made, Module) else [made]
    assert sum(1 for graph in graphs for _ in graph.walk()) == pytest.approx(600, rel=0.05)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each step is measured twice, and the objects of other tests are not looked at whenever memory is cleared."""
    monkeypatch.setattr(growth, "TURNS", 2)
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("quick")
def test_every_pass_is_measured() -> None:
    found = growth.measure("attributes", 40, passes=True)
    assert found["steps"].keys() == set(registry.names())
    assert found["nodes"] == 40
    assert all(step["bits"] >= 0 and step["bytes"] >= 0 for step in found["steps"].values())
    (run,) = growth.in_seconds([found])
    assert all(step["seconds"] == step["bits"] * found["bit"] for step in run["steps"].values())
    assert growth.measure("chain", 40, passes=True)["steps"].keys() > set(registry.names())


@pytest.mark.usefixtures("quick")
def test_passes_are_not_measured_where_graphs_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "MOST_FOR_PASSES", 39)
    assert growth.measure("chain", 40, passes=True)["steps"].keys() == {"parse", "alias", "queries", "fuse", "import"}
