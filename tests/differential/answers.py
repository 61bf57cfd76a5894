"""Comparing the answers of both analyses about one graph."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from irc.ir import Node, Value
from tests.differential.both import Both
from tests.differential.refusals import UNSEEN_SHARING, UNSEEN_WRITES, Refusal, reasons, written_inputs


class Answers:
    """Counts answers, and raises AssertionError for one of irc's that is more cautious for no reason.

    Attributes:
        seen: (query, irc's answer, PyTorch's) -> how often.
        reasons: (query, why irc's answer is the more cautious) -> how often: ``case n``, or see ``Refusal.excuses``.
    """

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, bool, bool]] = Counter()
        self.reasons: Counter[tuple[str, str]] = Counter()

    # -- sharing ---------------------------------------------------------

    def sharing(self, both: Both, pairs: Iterable[tuple[Value, Value]]) -> None:
        """``may_contain_alias``."""
        for a, b in pairs:
            ours = both.db.may_contain_alias(a, b)
            if not self._same("sharing", ours, both.they_contain(a, b)):
                found = reasons(both.db, both.db.why(a, b), UNSEEN_SHARING)
                assert self._explained("sharing", found), _tell(both, a, b)

    # -- writes ----------------------------------------------------------

    def writes(self, both: Both) -> None:
        """``has_writers``."""
        for value in both.values:
            ours = both.db.has_writers(value)
            if not self._same("writes", ours, both.they_write(value)):
                for node in both.db.writers(value):  # PyTorch misses every one of them
                    found = set[str]()
                    for written in written_inputs(both.db, node):
                        found |= reasons(both.db, both.db.why(written, value), UNSEEN_WRITES)
                    assert self._explained("writes", found), _tell(both, value, node)

    # -- motion ----------------------------------------------------------

    def motion(self, both: Both, node: Node, point: Node, before: bool) -> None:
        """``move_before`` and ``move_after``."""
        ours = (both.db.can_move_before if before else both.db.can_move_after)(node, point)
        if not self._same("motion", not ours, not both.would_they_move(node, point, before)):
            assert self._explained("motion", Refusal(both, node, point, before).excuses), _tell(both, node, point)

    # -- results ---------------------------------------------------------

    def _same(self, query: str, ours: bool, theirs: bool) -> bool:
        """Note two answers, of which True is the cautious one; whether irc's is no more cautious than PyTorch's."""
        self.seen[query, ours, theirs] += 1
        return theirs or not ours

    def _explained(self, query: str, reasons: set[str]) -> bool:
        self.reasons.update((query, reason) for reason in reasons)
        return bool(reasons)

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
                "reasons": {reason: n for (q, reason), n in sorted(self.reasons.items()) if q == query},
            }
            for query in dict.fromkeys(q for q, _, _ in self.seen)
        }

    def report(self, name: str) -> Iterator[str]:
        """What was found, in lines."""
        for query, said in (("sharing", "may share"), ("writes", "is written"), ("motion", "may not move")):
            both, only_theirs = self.seen[query, True, True], self.seen[query, False, True]
            only_ours, neither = self.seen[query, True, False], self.seen[query, False, False]
            if both + only_theirs + only_ours + neither:
                why = ", ".join(f"{r}: {n}" for (q, r), n in sorted(self.reasons.items()) if q == query) or "none"
                yield (
                    f"{name}: {said}: PyTorch says so {both + only_theirs} times, of which irc denies {only_theirs} "
                    f"({self.denied(query):.1%}); irc alone {only_ours} ({why}); neither {neither}"
                )


def _tell(both: Both, *what: Value | Node) -> str:
    names = " and ".join(f"%{w.name}" if isinstance(w, Value) else repr(w) for w in what)
    values = [w for w in what if isinstance(w, Value)]
    facts = "".join(f"\n    {f}" for f in both.db.why(values[0], values[-1])) if values else ""
    return f"irc's answer about {names} is more cautious than PyTorch's, and nothing tells why{facts}\n{both.graph}"
