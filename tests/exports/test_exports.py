"""Models as ONNX after the default pipeline: valid, with the same interface, and computing the same.

Of all that the onnx package brings along, those that `short` chooses; ``python -m tests.exports`` takes all.
"""

from collections import Counter
from functools import cache

import pytest

import irc
from tests.effort import slow_if
from tests.exports.choose import NOT_COMPUTED, runtimes_for, short
from tests.exports.examine import NOT_RIGHT, NOT_RUN, RANDOM, SAME, examine, operators
from tests.exports.suite import KINDS, Case, cases

SHARDS = {"node": 6, "pytorch-operator": 1, "pytorch-converted": 2, "simple": 1, "light": 1}


@cache
def _chosen(kind: str) -> list[Case]:
    return list(short(cases(kind)))


PARTS = [(kind, n) for kind in KINDS for n in range(SHARDS[kind])]


@pytest.mark.parametrize(
    ("kind", "shard"), slow_if(PARTS, [part for part in PARTS if part[0] == "node" and part[1] > 0])
)
def test_exported_models_are_the_same(kind: str, shard: int) -> None:
    counts: Counter[str] = Counter()
    troubles: list[str] = []
    chosen = [case for case in _chosen(kind)[shard :: SHARDS[kind]] if not operators(case.load()[0]) & NOT_COMPUTED]
    for case in chosen:
        found = examine(case, runtimes_for(case, is_short=True))
        troubles += [f"{case.name}: {trouble}" for trouble in found.troubles]
        counts.update(f"{runtime}: {verdict}" for runtime, verdict in found.verdicts.items())
    assert not troubles, "\n".join(troubles)
    assert counts[f"irc: {SAME}"] + counts[f"irc: {RANDOM}"] == len(chosen), counts
    assert counts[f"ONNX Runtime: {SAME}"] > len(chosen) / 2, counts
    assert counts[f"onnx.reference: {SAME}"] or kind == "light"
    assert counts[f"onnx.reference: {NOT_RUN}"] + counts[f"onnx.reference: {NOT_RIGHT}"] <= len(chosen) / 10, counts


def test_what_is_not_computed_is_refused() -> None:
    refused = [case for case in cases("simple") if operators(case.load()[0]) & NOT_COMPUTED]
    assert len(refused) == 2
    for case in refused:
        with pytest.raises(irc.Error, match="Gradient"):
            examine(case, [])
