"""Sets of operators that tests go through, and records that hold for one test."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from irc.ops import Operator, records, registry
from irc.ops.record import kind_of

POINTWISE = frozenset(each.kind for each in records() if each.pointwise)
TORCH_POINTWISE = frozenset(each.kind for each in records("aten") if each.result_type is not None)
TORCH = {each.name: each for each in records("aten")}
COPIED = {each.name for each in TORCH.values() if each.copied}
IN_PLACE = sorted(each.name for each in TORCH.values() if each.in_place is not None)


@contextmanager
def records_for_a_while(changed: Mapping[str, Operator] = {}) -> Generator[None]:
    """``changed`` records, and those registered meanwhile, hold until this ends."""
    with patch.dict(registry._records, changed):
        before = dict(registry._records)
        notify(changed)
        yield
        after = dict(registry._records)
    notify([kind for kind in {*changed, *after} if after.get(kind) is not before.get(kind) or kind in changed])


def notify(kinds: object) -> None:
    for kind in kinds:  # type: ignore[attr-defined]
        for tell in registry.on_change:
            tell(kind)


def operator_of(*rows: str, **facts: Any) -> Operator:
    """The record of the operator that ``rows``, with kind and overload, are of."""
    return Operator(kind_of(rows[0]), rows, **facts)
