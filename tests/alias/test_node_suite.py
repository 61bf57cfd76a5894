"""The ONNX node suite, run on real memory: whatever a kernel shares with its inputs, the schema rows say.

Models are run node by node, with control flow and functions, and watched as
the random programs are. Inputs are known to be apart, so that only rows can
make results share with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irc.alias import AliasDb, analyze
from irc.errors import Error
from irc.frontend.onnx import import_model
from irc.ir import Graph, Module
from irc.runtime.kernels import means
from irc.runtime.plan import lower
from tests.programs.interpreter import interpret, share_inside
from tests.programs.soundness import Soundness
from tests.suites import suite, value

SHARDS = 4


class Apart(Soundness):
    """The main graph's inputs share with nothing."""

    def _db(self, graph: Graph) -> AliasDb:
        return analyze(graph, noalias=graph.inputs if graph is self._module.main else ())


def can_run(module: Module) -> bool:
    nodes = [n for graph in module.graphs.values() for n in graph.walk()]
    return all(n.blocks or n.kind.startswith("prim::") or means(n) is not None for n in nodes)


def watched(module: Module, inputs: list[Any]) -> int:
    """Run with every node watched; how often memory was shared."""
    watcher = Apart(module)
    interpret(module.main, inputs, watcher)
    return watcher.seen["shared"]


def at_the_end(module: Module, inputs: list[Any]) -> int:
    """Run as plans do, and look at outputs and inputs only."""
    graph = module.main
    db = analyze(graph, noalias=graph.inputs)
    outputs = lower(graph).run(inputs)
    pairs = [(o, i) for o, x in zip(graph.outputs, outputs) for i, y in zip(graph.inputs, inputs) if share_inside(x, y)]
    for output, given in pairs:
        assert db.may_contain_alias(output, given), f"%{output.name} shares with %{given.name}"
    return len(pairs)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_rows_cover_what_kernels_share(shard: int) -> None:
    run = shared = 0
    for case in suite("node")[shard::SHARDS]:
        try:
            module = import_model(case.model)
        except Error:
            continue  # refused: tests/frontend says which
        if not can_run(module):
            continue
        scans = any(n.kind == "onnx::Scan" for graph in module.graphs.values() for n in graph.walk())
        for given, _ in case.data_sets:
            inputs = [value(v) for v in given]
            with np.errstate(all="ignore"):
                shared += (at_the_end if scans else watched)(module, inputs)
            run += 1
    assert run > 300, f"only {run} cases were run"
    assert shared > 50, "hardly anything was shared"
