"""Comparing the answers of both analyses about one graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from irc.alias.sets import EMPTY, intersects
from irc.ir import Node, Value
from tests.differential.both import Both

MISSES = frozenset({1, 2, 4, 5, 7})
"""The cases in which PyTorch misses that two values may share memory."""

IGNORES = MISSES | {3}
"""Those in which it misses a write: it does not look into containers."""


class Answers:
    """Counts answers, and raises AssertionError for one of irc's that is more cautious for no reason.

    Attributes:
        seen: (query, irc's answer, PyTorch's) -> how often.
        cases: (query, number of the case) -> how often it was the reason.
        others: for what PyTorch does not look at when it moves nodes -> how often it was the reason.
    """

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, bool, bool]] = Counter()
        self.cases: Counter[tuple[str, int]] = Counter()
        self.others: Counter[str] = Counter()

    # -- sharing ---------------------------------------------------------

    def sharing(self, both: Both, pairs: Iterable[tuple[Value, Value]]) -> None:
        """``may_contain_alias``."""
        for a, b in pairs:
            ours = both.db.may_contain_alias(a, b)
            if not self._same("sharing", ours, both.they_contain(a, b)):
                facts = both.db.why(a, b)
                assert self._explained("sharing", {f.case for f in facts} & MISSES), _tell(both, a, b)

    # -- writes ----------------------------------------------------------

    def writes(self, both: Both) -> None:
        """``has_writers``."""
        for value in both.values:
            ours = both.db.has_writers(value)
            if not self._same("writes", ours, both.they_write(value)):
                for node in both.db.writers(value):  # PyTorch misses every one of them
                    found = set[int]()
                    for written in written_inputs(both, node):
                        found |= {f.case for f in both.db.why(written, value)}
                    assert self._explained("writes", found & IGNORES), _tell(both, value, node)

    # -- motion ----------------------------------------------------------

    def motion(self, both: Both, node: Node, point: Node, before: bool) -> bool:
        """``move_before`` and ``move_after``; whether PyTorch has changed its graph."""
        ours = (both.db.can_move_before if before else both.db.can_move_after)(node, point)
        theirs = both.they_move(node, point, before)
        if not self._same("motion", not ours, not theirs):
            found = set[int]()
            for a, b in conflicts(both, between(node, point)):
                found |= {f.case for f in both.db.why(a, b)} & IGNORES
            others = [why for why in (rewrites, acts_inside) if why(both, between(node, point))]
            self.others.update(why.__name__ for why in others)
            assert self._explained("motion", found) or others, _tell(both, node, point)
        return theirs

    # -- results ---------------------------------------------------------

    def _same(self, query: str, ours: bool, theirs: bool) -> bool:
        """Note two answers, of which True is the cautious one; whether irc's is no more cautious than PyTorch's."""
        self.seen[query, ours, theirs] += 1
        return theirs or not ours

    def _explained(self, query: str, cases: Iterable[int]) -> bool:
        found = list(cases)
        self.cases.update((query, case) for case in found)
        return bool(found)

    def theirs(self, query: str) -> int:
        """How many cautious answers PyTorch gave."""
        return self.seen[query, False, True] + self.seen[query, True, True]

    def denied(self, query: str) -> float:
        """The share of them that irc does not give."""
        return self.seen[query, False, True] / max(self.theirs(query), 1)

    def to_dict(self) -> dict[str, Any]:
        """All counts."""
        return {
            query: {
                "both": self.seen[query, True, True],
                "PyTorch alone": self.seen[query, False, True],
                "irc alone": self.seen[query, True, False],
                "neither": self.seen[query, False, False],
                "cases": {str(case): n for (q, case), n in sorted(self.cases.items()) if q == query},
                "others": dict(self.others) if query == "motion" else {},
            }
            for query in dict.fromkeys(q for q, _, _ in self.seen)
        }

    def report(self, name: str) -> Iterator[str]:
        """What was found, in lines."""
        for query, said in (("sharing", "may share"), ("writes", "is written"), ("motion", "may not move")):
            both, only_theirs = self.seen[query, True, True], self.seen[query, False, True]
            only_ours, neither = self.seen[query, True, False], self.seen[query, False, False]
            if both + only_theirs + only_ours + neither:
                reasons = [f"case {c}: {n}" for (q, c), n in sorted(self.cases.items()) if q == query]
                if query == "motion":
                    reasons += [f"{other.replace('_', ' ')}: {n}" for other, n in sorted(self.others.items())]
                why = ", ".join(reasons) or "none"
                yield (
                    f"{name}: {said}: PyTorch says so {both + only_theirs} times, of which irc denies {only_theirs} "
                    f"({self.denied(query):.1%}); irc alone {only_ours} ({why}); neither {neither}"
                )


def written_inputs(both: Both, node: Node) -> Iterator[Value]:
    """The inputs of ``node`` through which it writes."""
    written = both.db.write_set(node)
    return (v for v in node.inputs if written is not EMPTY and intersects(written, both.db.reach_set(v)))


def between(a: Node, b: Node) -> list[Node]:
    """The nodes from one to the other, both included, in order."""
    first, last = (a, b) if a.is_before(b) else (b, a)
    found = [first]
    while found[-1] is not last:
        following = found[-1].next
        assert following is not None
        found.append(following)
    return found


def inside(node: Node) -> Iterator[Node]:
    """``node`` and all nodes in it."""
    yield node
    for block in node.blocks:
        for inner in block.nodes:
            yield from inside(inner)


def conflicts(both: Both, nodes: list[Node]) -> Iterator[tuple[Value, Value]]:
    """What one node writes and another reads of the same memory."""
    for node in nodes:
        for writer in inside(node):
            if both.db.write_set(writer) is EMPTY:
                continue
            for other in nodes:
                for reader in inside(other) if other is not node else ():
                    for read in (*reader.inputs, *(r for b in reader.blocks for r in b.returns)):
                        if both.db.writes_to_alias(writer, read):
                            yield from ((w, read) for w in written_inputs(both, writer))


def rewrites(both: Both, nodes: list[Node]) -> bool:
    """Whether two of the nodes write the same memory: PyTorch does not look for that."""
    written = [both.db.write_set(n) for n in nodes]
    return any(intersects(a, b) for i, a in enumerate(written) for b in written[:i])


def acts_inside(both: Both, nodes: list[Node]) -> bool:
    """Whether one of the nodes has side effects in its blocks: PyTorch moves others past it."""
    return any(n.blocks and both.db.has_side_effects(n) for n in nodes)


def _tell(both: Both, *what: Value | Node) -> str:
    names = " and ".join(f"%{w.name}" if isinstance(w, Value) else repr(w) for w in what)
    values = [w for w in what if isinstance(w, Value)]
    facts = "".join(f"\n    {f}" for f in both.db.why(values[0], values[-1])) if values else ""
    return f"irc's answer about {names} is more cautious than PyTorch's, and nothing tells why{facts}\n{both.graph}"
