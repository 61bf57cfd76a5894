"""Results as rows, kept as JSON, and compared with those of another day.

Less is better in every row that is compared. A row of irc's own has a value; a
row about a peer has the peer's value and the ratio of irc's to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

import numpy as np

from benchmarks import facts
from benchmarks.race import IRC

BASELINE = Path(__file__).parent / "baseline.json"
"""The results that others are compared with."""

TOLERANCES: dict[str, float] = {"nodes": 0.0, "arrays": 0.0, "steps": 0.0, "count": 0.1, "exponent": 0.1, "bytes": 0.1}
"""How much more than in the baseline is no regression yet, by unit (of "bytes/node" by "bytes"): these say the same on
every machine."""

TIME_TOLERANCE = 0.3
"""The same for times and their ratios, on top of their noise in both runs: runs differ by more than turns of one do."""

TIMES = frozenset(["s", "ms", "us"])
"""Units of time. Rows of yet other units are to be read, not compared."""

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
        noise: how far apart what was measured lies, as a share of it; of a ratio, that of both together.
        limit: how much the ratio, or without one the value, may be on any machine; None: no more than in the baseline.
        low: the lower end of its confidence interval: the row exceeds its limit if this does. None: it is exact.
    """

    name: str
    value: float
    unit: str
    ratio: float | None = None
    noise: float = 0.0
    limit: float | None = None
    low: float | None = None

    @property
    def exceeds(self) -> bool:
        """Whether it is beyond its limit, and not by chance."""
        value = self.value if self.ratio is None else self.ratio
        return self.limit is not None and (value if self.low is None else self.low) > self.limit


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


Samples = Mapping[str, Sequence[float]]
"""Contender -> what was measured of it, turn by turn."""


def against_peers(subject: str, samples: Samples, unit: str, own: str = IRC, scale: float = 1.0) -> list[Row]:
    """Rows for ``own`` and its peers, which are named with their versions: medians, times ``scale``."""
    middle = {name: median(taken) * scale for name, taken in samples.items()}
    noise = {name: spread(taken) for name, taken in samples.items()}
    rows = [Row(f"{subject}/{own}", middle[own], unit, noise=noise[own])]
    for peer, value in middle.items():
        if peer != own:
            ratio = middle[own] / value if value else None
            rows.append(Row(f"{subject}/{facts.title(peer)}", value, unit, ratio, noise[own] + noise[peer]))
    return rows


def limited(name: str, own: Sequence[float], other: Sequence[float], limit: float) -> Row:
    """A row of how much of another's time ``own`` takes, pair by pair, with its limit."""
    ratios = [a / b for a, b in zip(own, other, strict=True)]
    low, _ = interval(ratios)
    return Row(name, median(ratios), "times", noise=spread(ratios), limit=limit, low=low)


def interval(samples: Sequence[float], resamples: int = 2000) -> tuple[float, float]:
    """The 95 % confidence interval of the median, by the bootstrap (Efron, 1979)."""
    taken = np.random.default_rng(0).choice(np.asarray(samples), (resamples, len(samples)))
    low, high = np.quantile(np.median(taken, 1), (0.025, 0.975))
    return float(low), float(high)


def spread(samples: Sequence[float]) -> float:
    """Half of the distance between the quartiles, as a share of the median."""
    if len(samples) < 2:
        return 0.0
    low, middle, high = quantiles(samples, n=4, method="inclusive")
    return (high - low) / 2 / middle if middle else 0.0


def show(rows: Iterable[Row]) -> None:
    """Print rows and, where there is a peer, how much of its value irc's is."""
    for row in rows:
        value = f"{row.value:,}" if isinstance(row.value, int) else f"{row.value:,.4g}"
        if abs(row.value) >= 1000:
            value = f"{row.value:,.0f}"
        against = "" if row.ratio is None else f"   irc: {row.ratio:.3g} of it"
        print(f"{row.name:44} {value:>14} {row.unit}{against}{limit_of(row)}")


def limit_of(row: Row) -> str:
    """What to print of a row's limit, if it has one."""
    if row.limit is None:
        return ""
    surely = "" if row.low is None else f", surely {row.low:.3g}"
    return f"   at most {row.limit:g}{surely}{': EXCEEDED' if row.exceeds else ''}"


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

    Ratios, exponents, counts and bytes always can. A time of irc's own can if
    both results are of the same kind of machine, and if no ratio to a peer says the same more surely.
    """
    same = not differing_facts(before["machine"], after["machine"])
    old, new = ({row["name"]: Row(**row) for row in result["rows"]} for result in (before, after))
    shared = [(old[name], row) for name, row in new.items() if name in old and old[name].unit == row.unit]
    rivalled = {_subject(row) for was, row in shared if was.ratio is not None and row.ratio is not None}
    found: list[Change] = []
    for was, row in shared:
        tolerance = _tolerance(was, row)
        if tolerance is None or (was.ratio is None) != (row.ratio is None):
            continue
        if was.ratio is not None and row.ratio is not None:
            found.append(Change(f"{row.name} (irc to it)", was.ratio, row.ratio, "ratio", tolerance))
        elif not _is_time(row) or (same and _subject(row) not in rivalled):
            found.append(Change(row.name, was.value, row.value, row.unit, tolerance))
    return found


def _subject(row: Row) -> str:
    return row.name.rpartition("/")[0]


def _is_time(row: Row) -> bool:
    return row.unit.split("/")[0] in TIMES


def _tolerance(was: Row, row: Row) -> float | None:
    if _is_time(row):
        return TIME_TOLERANCE + was.noise + row.noise
    return TOLERANCES.get(row.unit.split("/")[0])
