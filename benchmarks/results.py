"""Results as rows, kept as JSON, and compared with those of another day.

Less is better in every row. A row of irc's own has a value; a row about a
peer has the peer's value and the ratio of irc's to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import facts

BASELINE = Path(__file__).parent / "baseline.json"
"""The results that others are compared with."""

TOLERANCES: dict[str, float] = {"nodes": 0.0, "exponent": 0.1, "bytes/node": 0.1}
"""How much more than in the baseline is no regression yet, by unit: these say the same on every machine."""

TIME_TOLERANCE = 0.3
"""The same for ratios and for whatever else: times vary from run to run."""

FLOORS = {"exponent": 1.0}
"""Less than this is not better: steps that do next to nothing have exponents of any size below 1."""

SAME_MACHINE = ("processor", "processors", "system", "python")
"""The machine facts that must agree for absolute times to be compared."""


class Row(NamedTuple):
    """One result.

    Attributes:
        name: what was measured; for a peer with its version.
        value: how much, of irc or of the peer.
        unit: of what.
        ratio: for a peer: irc's value divided by this one.
    """

    name: str
    value: float
    unit: str
    ratio: float | None = None


class Change(NamedTuple):
    """A row that two results have and that can be compared: by its ratio if it has one, by its value otherwise."""

    name: str
    before: float
    after: float
    unit: str
    tolerance: float

    @property
    def is_regression(self) -> bool:
        """Whether it is worse by more than the tolerance."""
        floor = FLOORS.get(self.unit, 0.0)
        return max(self.after, floor) > max(self.before, floor) * (1 + self.tolerance)


def against_peers(
    subject: str, measured: Mapping[str, float], unit: str, own: str, titles: Mapping[str, str]
) -> list[Row]:
    """Rows for ``own`` and its peers. ``titles``: contender -> how it is called in the row, with its version."""
    mine = measured[own]
    rows = [Row(f"{subject}/{own}", mine, unit)]
    for peer, value in measured.items():
        if peer != own:
            rows.append(Row(f"{subject}/{titles.get(peer, peer)}", value, unit, mine / value if value else None))
    return rows


def save(name: str, rows: Iterable[Row], **details: Any) -> Path:
    """Write the rows of one benchmark, with facts about the machine, as ``out/NAME.json``."""
    return facts.save(name, {"rows": [row._asdict() for row in rows], **details})


def load(folder: Path = facts.OUT) -> dict[str, Any]:
    """All results in a folder: benchmark -> its machine and rows. Files without rows are none."""
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text())
        if "rows" in result:
            found[path.stem] = {"machine": result["machine"], "rows": result["rows"]}
    return found


def keep(results: Mapping[str, Any], path: Path = BASELINE) -> None:
    """Make ``results`` the baseline. A row is one line, so that version control shows which of them changed."""
    lines: list[str] = []
    for name, result in results.items():
        rows = ",\n".join(f"  {json.dumps(row)}" for row in result["rows"])
        lines.append(f'{json.dumps(name)}: {{"machine": {json.dumps(result["machine"])}, "rows": [\n{rows}\n]}}')
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def differing_facts(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The facts in which two machines differ; if none, their times may be compared."""
    return [fact for fact in SAME_MACHINE if before.get(fact) != after.get(fact)]


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """What can be compared of two results of one benchmark.

    Ratios, exponents and counts always can, other values if both were measured on the same kind of machine.
    """
    same = not differing_facts(before["machine"], after["machine"])
    old = {row["name"]: _row(row) for row in before["rows"]}
    found: list[Change] = []
    for row in map(_row, after["rows"]):
        was = old.get(row.name)
        if was is None or was.unit != row.unit:
            continue
        if was.ratio is not None and row.ratio is not None:
            found.append(Change(f"{row.name} (irc to it)", was.ratio, row.ratio, "ratio", _tolerance(row.unit)))
        elif row.ratio is None and was.ratio is None and (same or row.unit in TOLERANCES):
            found.append(Change(row.name, was.value, row.value, row.unit, _tolerance(row.unit)))
    return found


def _tolerance(unit: str) -> float:
    return TOLERANCES.get(unit, TIME_TOLERANCE)


def _row(row: Mapping[str, Any]) -> Row:
    return Row(row["name"], row["value"], row["unit"], row.get("ratio"))
