"""The work of passes grows no faster than the graph, counted and not timed."""

from __future__ import annotations

import pytest

import irc.compiler  # noqa: F401  # registers the passes
from irc.alias.facts import Facts
from irc.ir import parse_graph
from irc.passes import PassManager


@pytest.mark.parametrize("pipeline", ["in-place", "remove-mutation", "dce", "cse", "fuse"])
def test_values_that_may_be_at_thousands_of_places_are_not_listed_for_each_node(
    pipeline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In nests of loops one after the other, a carried value may be whatever any loop before it made."""
    looked_at = 0
    site = Facts.site

    def counting(facts: Facts, location: int) -> object:
        nonlocal looked_at
        looked_at += 1
        return site(facts, location)

    monkeypatch.setattr(Facts, "site", counting)
    counts: list[int] = []
    for nests in (40, 160):
        looked_at = 0
        lines = ["graph(%p0 : Tensor, %q0 : Tensor, %n : int):", "  %true : bool = prim::Constant[value=1]()"]
        for i in range(nests):
            lines += [
                f"  %p{i + 1} : Tensor, %q{i + 1} : Tensor = prim::Loop(%n, %true, %p{i}, %q{i})",
                f"    block0(%t{i} : int, %a{i} : Tensor, %b{i} : Tensor):",
                f"      %r{i} : Tensor = aten::relu(%a{i})",
                f"      -> (%true, %b{i}, %r{i})",
            ]
        graph = parse_graph("\n".join([*lines, f"  return (%p{nests}, %q{nests})", ""]))
        PassManager(pipeline).run(graph)
        counts.append(looked_at)
    assert counts[1] <= 5 * counts[0] + 100
