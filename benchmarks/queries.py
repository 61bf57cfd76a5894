"""``python -m benchmarks.queries``: what a question and an update cost.

Three promises: a ``may_alias`` query takes at most 0.7 of what PyTorch's
``may_contain_alias`` takes from Python on the same graph; an update in place
takes at most 1.5 times as long in a graph of 64,000 nodes as in one of 1,000;
and so does ``set_wildcard``, an affected element. What is compared is measured
in turns, and of the turns the median counts.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

from benchmarks import families
from irc.alias import AliasDb, analyze
from irc.ir import Builder, Graph, Value, parse_graph, types
from irc.ir.graph import gc_paused

FAMILIES = ("chain", "in-place", "lists", "one-list")
SMALL, LARGE = 1_000, 64_000
TURNS = 31
QUERIES = 1_000
UPDATES = 100
VIEWS = 3


class Row(NamedTuple):
    """One comparison: ``seconds`` is what one question, update or affected element takes, ``base`` the other side's."""

    name: str
    seconds: float
    base: float
    ratio: float
    limit: float


def rows() -> list[Row]:
    """All comparisons; those against PyTorch only where it is installed."""
    return [*_queries(), *_updates()]


def main() -> None:
    show(rows())


def show(found: list[Row]) -> None:
    """Print the comparisons."""
    for row in found:
        print(
            f"{row.name:44} {row.seconds * 1e9:9,.0f} ns against {row.base * 1e9:9,.0f} ns: "
            f"{row.ratio:.2f} (at most {row.limit})"
        )


def _compare(
    name: str, count: int, ours: Callable[[], int | None], base: Callable[[], int | None], limit: float
) -> Row:
    """Measure both in turns; ``count`` is how many questions or updates a turn makes."""
    samples: list[tuple[float, float]] = []
    with gc_paused():
        for _ in range(TURNS):
            samples.append((_seconds(ours) / count, _seconds(base) / count))
    mine, theirs = (median(side) for side in zip(*samples, strict=True))
    return Row(name, mine, theirs, mine / theirs, limit)


def _seconds(action: Callable[[], int | None]) -> float:
    """Processor time of ``action`` or, if it returns a count, of one of these: both sides are of one thread."""
    begin = time.process_time()
    count = action()
    return (time.process_time() - begin) / (count or 1)


# -- questions ---------------------------------------------------------------------


def _queries() -> list[Row]:
    try:
        import torch
    except ImportError:
        print("torch is not installed: no comparison of queries")
        return []
    found: list[Row] = []
    for family in FAMILIES:
        text = families.text(family, LARGE // 8)
        graph, theirs = parse_graph(text), torch._C.parse_ir(text)
        mine = [v for node in graph.walk() for v in node.outputs]
        other = [v for node in theirs.nodes() for v in node.outputs()]
        assert len(mine) == len(other), "the two graphs have different values"
        rng = random.Random(0)
        at = [(rng.randrange(len(mine)), rng.randrange(len(mine))) for _ in range(QUERIES)]
        ours = _ask(analyze(graph).may_alias, [(mine[i], mine[j]) for i, j in at])
        base = _ask(theirs.alias_db().may_contain_alias, [(other[i], other[j]) for i, j in at])
        found.append(_compare(f"may_alias, {family}", QUERIES, ours, base, 0.7))
    return found


def _ask(query: Callable[[Any, Any], bool], pairs: list[tuple[Any, Any]]) -> Callable[[], None]:
    def run() -> None:
        for a, b in pairs:
            query(a, b)

    return run


# -- updates -----------------------------------------------------------------------


class Views:
    """A graph of n nodes: tensors, each with a few views and an in-place write; all is known of all of them."""

    def __init__(self, n: int) -> None:
        self.graph = Graph()
        x = self.graph.add_input(types.TENSOR)
        b = Builder(self.graph)
        self.made = [b.op("aten::relu", x) for _ in range(n // (VIEWS + 2))]
        ends: list[Value] = []
        for value in self.made:
            for _ in range(VIEWS):
                value = b.op("aten::t", value)
            ends.append(b.op("aten::relu_", value))
        self.graph.set_outputs(ends)
        self.db: AliasDb = analyze(self.graph)
        for value in ends:
            self.db.may_alias(value, x)
        self.db.has_writers(x)
        self.ends = ends
        self._at = 0
        self.copy_and_replace()  # the first makes what later ones keep

    def next(self) -> Value:
        """A tensor that no update has touched."""
        self._at += 1
        return self.made[self._at % len(self.made)]

    def add_and_erase(self) -> None:
        """A view is put in, and taken out again."""
        for _ in range(UPDATES):
            value = self.next()
            assert value.node is not None
            node = self.graph.create("aten::t", [value], [types.TENSOR]).insert_after(value.node)
            self.db.add_node(node)
            self.db.may_alias(node.output, value)
            self.db.erase_node(node)
            node.erase()

    def add_and_erase_write(self) -> None:
        """A write is put in, and taken out again."""
        for _ in range(UPDATES):
            value = self.next()
            assert value.node is not None
            node = self.graph.create("aten::relu_", [value], [types.TENSOR]).insert_after(value.node)
            self.db.add_node(node)
            self.db.has_writers(value)
            self.db.erase_node(node)
            node.erase()

    def copy_and_replace(self) -> None:
        """What a fuser does: another node takes over what a node makes."""
        for _ in range(UPDATES):
            at = (self._at + 1) % len(self.made)
            old = self.next()
            assert old.node is not None
            new = self.graph.create(old.node.kind, old.node.inputs, [types.TENSOR]).insert_before(old.node).output
            self.db.copy_value(old, new)
            old.replace_all_uses_with(new)
            self.db.replace_value(old, new)
            self.db.erase_node(old.node)
            old.node.erase()
            self.made[at] = new
            self.db.may_alias(new, self.ends[at])

    def declare_unknown(self) -> int:
        """A tensor becomes unknown, and so what is a view of it; returns how many elements changed.

        Those are more each time: all that is unknown may be this one from now on.
        """
        before = self.db.counters()["grown"]
        self.db.set_wildcard(self.made.pop())
        return self.db.counters()["grown"] - before


def _updates() -> list[Row]:
    small, large = Views(SMALL), Views(LARGE)
    found = [
        _compare(f"{name}, {LARGE:,} against {SMALL:,} nodes", UPDATES, ours, base, 1.5)
        for name, ours, base in (
            ("add and erase a view", large.add_and_erase, small.add_and_erase),
            ("add and erase a write", large.add_and_erase_write, small.add_and_erase_write),
            ("copy, replace and erase", large.copy_and_replace, small.copy_and_replace),
        )
    ]
    small, large = Views(SMALL), Views(LARGE)
    name = f"set_wildcard, an element, {LARGE:,} against {SMALL:,} nodes"
    found.append(_compare(name, 1, large.declare_unknown, small.declare_unknown, 1.5))
    return found


if __name__ == "__main__":
    main()
