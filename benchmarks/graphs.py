"""``python -m benchmarks.graphs``: irc's alias analysis and fuser against PyTorch's, on the same graph text.

Both are given parsed graphs and take turns; Python's collector rests while
they are measured, as it does whenever irc reads or optimises a graph.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import irc.compiler  # noqa: F401  # registers the passes
from benchmarks import facts, families, peers, results
from benchmarks.race import IRC, race
from benchmarks.results import Row, against_peers
from irc.alias import analyze
from irc.ir import parse_graph, parse_module
from irc.ir.graph import gc_paused
from irc.ir.types import ClassType
from irc.passes import PassManager

ALIAS_NODES = 64_000
FUSE_NODES = 32_000
ALIAS = ("chain", "in-place", "lists", "one-list", "branches")
FUSE = ("barriers", "parallel", "groups", "writes")
SCRIPTED = Path(__file__).parent / "yolov3" / "scripted.ir"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graphs", description=__doc__)
    parser.add_argument("--turns", type=int, default=5, help="how often each contender is timed (default 5)")
    options = parser.parse_args()
    if options.turns < 1:
        parser.error("--turns must be at least 1")
    print(*peers.absent(), sep="\n")
    print(f"\n{results.save('graphs', measure(options.turns))}")


def measure(turns: int) -> list[Row]:
    """Measure all, print a table, and return its rows."""
    title = facts.title("torch") if peers.is_installed("torch") else ""
    print(f"\n{'':34}{'irc, ms':>10}{title and f'{title}, ms':>22}{title and 'irc to it':>12}")
    rows = _measure("alias/scripted YOLOv3", scripted(), alias(), turns)
    for name in ALIAS:
        rows += _measure(f"alias/{name}/{ALIAS_NODES}", families.text(name, ALIAS_NODES), alias(), turns)
    for name in FUSE:
        rows += _measure(f"fuse/{name}/{FUSE_NODES}", families.text(name, FUSE_NODES, families.TYPED), fuse(), turns)
    return rows


class Side(NamedTuple):
    """What one contender does: ``read`` the text, which is not timed, then ``act`` on the graph."""

    read: Callable[[str], Any]
    act: Callable[[Any], Any]


Sides = dict[str, Side]
"""Contender -> its side. PyTorch is left out if it is not installed."""


def alias() -> Sides:
    """Building the alias analysis."""
    sides = {IRC: Side(parse_graph, analyze)}
    if peers.is_installed("torch"):
        from benchmarks import torch_peer

        sides["torch"] = Side(torch_peer.parse, torch_peer.alias)
    return sides


def fuse() -> Sides:
    """The fuse pass with its alias analysis."""
    sides = {IRC: Side(parse_graph, lambda graph: PassManager("fuse").run(graph))}
    if peers.is_installed("torch"):
        from benchmarks import torch_peer

        sides["torch"] = Side(torch_peer.parse, torch_peer.fuse)
    return sides


def scripted() -> str:
    """YOLOv3 as TorchScript, inlined; attributes have become inputs, since PyTorch reads no class types from text."""
    module = parse_module(SCRIPTED.read_text(), filename=SCRIPTED.name)
    PassManager("inline").run(module)
    graph = module.main
    reads = [node for node in graph.walk() if node.kind == "prim::GetAttr"]
    for number, node in enumerate(reads):
        if not isinstance(node.output.type, ClassType):
            node.output.replace_all_uses_with(graph.add_input(node.output.type, f"attribute{number}"))
    for node in reversed(reads):
        node.erase()
    graph.block.erase_params([value.index for value in graph.inputs if isinstance(value.type, ClassType)])
    return str(graph)


def _measure(name: str, text: str, sides: Sides, turns: int) -> list[Row]:
    def prepared(contender: str) -> Any:
        gc.collect()  # of the turn before
        return sides[contender].read(text)

    with gc_paused():
        samples, _ = race({contender: side.act for contender, side in sides.items()}, prepared, turns)
    rows = against_peers(name, samples, "s")
    peer = "".join(f"{row.value * 1e3:22.2f}{row.ratio:12.2f}" for row in rows if row.ratio is not None)
    print(f"{name:34}{rows[0].value * 1e3:10.2f}{peer}", flush=True)
    return rows


if __name__ == "__main__":
    main()
