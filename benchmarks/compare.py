"""``python -m benchmarks.compare``: the last results against the baseline. Exit status 1 if anything is worse.

Rows that have a limit of their own are held to that, whatever the baseline says.

Ratios, exponents, counts and bytes a node are compared on every machine,
absolute times only where the machine is like that of the baseline.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import facts, results


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("--baseline", type=Path, default=results.BASELINE, metavar="FILE")
    parser.add_argument("--results", type=Path, default=facts.OUT, metavar="FOLDER", help="what benchmarks wrote")
    parser.add_argument("--keep", action="store_true", help="make the last results the baseline")
    options = parser.parse_args()
    measured = results.load(options.results)
    if not measured:
        parser.error(f"{options.results} holds no results: run python -m benchmarks first")
    if options.keep:
        results.keep(measured, options.baseline)
        print(f"{options.baseline}: {', '.join(measured)}")
        return
    if not options.baseline.exists():
        parser.error(f"{options.baseline} does not exist: --keep makes the last results the baseline")
    sys.exit(1 if report(json.loads(options.baseline.read_text()), measured) else 0)


def report(baseline: Mapping[str, Any], measured: Mapping[str, Any]) -> int:
    """Print what is worse, beyond its limit or not comparable; returns how many rows are worse or beyond."""
    worse = 0
    for name, after in measured.items():
        beyond = [row for row in (results.Row(**kept) for kept in after["rows"]) if row.exceeds]
        worse += len(beyond)
        for row in beyond:
            value = row.value if row.ratio is None else row.ratio
            print(f"{name}: {row.name}: {value:.4g}{results.limit_of(row)}")
        if name not in baseline:
            print(f"{name}: not in the baseline")
            continue
        before = baseline[name]
        compared = results.changes(before, after)
        regressions = [change for change in compared if change.is_regression]
        worse += len(regressions)
        rows = len(after["rows"])
        print(f"{name}: {len(compared)} of {rows} rows compared, {len(regressions)} worse{_reason(before, after)}")
        for change in sorted(regressions, key=lambda change: change.before / change.after):
            share = f"{change.after / change.before - 1:+.0%}, " if change.before else ""
            print(
                f"  {change.name}: {change.before:.4g} -> {change.after:.4g} {change.unit} "
                f"({share}allowed {change.tolerance:+.0%})"
            )
    for name in baseline.keys() - measured.keys():
        print(f"{name}: in the baseline, but not measured")
    return worse


def _reason(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    differing = results.differing_facts(before["machine"], after["machine"])
    return f" (times are not compared: another {', another '.join(differing)})" if differing else ""


if __name__ == "__main__":
    main()
