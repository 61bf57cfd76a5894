"""``python -m benchmarks.zoo``: measure the models of the manifest, as the table ``results.md`` beside this file.

``--fetch`` downloads what is missing first; without it nothing is downloaded, and models that are not there are left
out. Each model is measured in a process of its own, so that one that ends its process is a fault of that model. The
exit status is 1 if irc is wrong, or refuses a model, anywhere.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import facts
from benchmarks.zoo.measure import Result, measure
from benchmarks.zoo.models import Entry, entries
from benchmarks.zoo.packages import fetch, is_fetched
from benchmarks.zoo.table import TABLE, write

SECONDS = 900.0
"""What one model may take."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__)
    parser.add_argument("names", nargs="*", help="models of the manifest (default: all)")
    parser.add_argument("--fetch", action="store_true", help="download the packages of models that are missing")
    parser.add_argument("--turns", type=int, default=7, help="timed runs of each contender (default 7)")
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)  # measure one model, here, and write its row
    given = parser.parse_args()
    try:
        chosen = entries(given.names)
    except ValueError as error:
        parser.error(str(error))
    if given.result is not None:
        given.result.write_text(json.dumps(measure(chosen[0], given.turns).to_dict()))
        return 0
    failed = fetch(chosen) if given.fetch else []
    for line in failed:
        print(line, file=sys.stderr)
    present = [entry for entry in chosen if is_fetched(entry)]
    if len(present) < len(chosen):
        print(f"{len(chosen) - len(present)} models are not here: python -m benchmarks.zoo --fetch", file=sys.stderr)
    results = [_in_own_process(entry, given.turns) for entry in present]
    if not given.names and results:
        facts.save("zoo", {"models": [result.to_dict() for result in results]})
        write({entry.name: entry for entry in present}, results)
        print(f"written: {TABLE.relative_to(Path.cwd()) if TABLE.is_relative_to(Path.cwd()) else TABLE}")
    return 1 if failed or any(result.faults for result in results) else 0


def _in_own_process(entry: Entry, turns: int) -> Result:
    """The row of one model; prints a line about it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        command = [sys.executable, "-m", "benchmarks.zoo", entry.name, "--turns", str(turns), "--result", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            result = Result(entry.name, [f"takes longer than {SECONDS:.0f} s"])
        else:
            if path.is_file():
                result = Result(**json.loads(path.read_text()))
            else:
                last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
                result = Result(entry.name, [f"ends its process: {last[0][:300]}"])
    print(f"{entry.name:28} {'; '.join(result.faults) or 'right'}", flush=True)
    return result


if __name__ == "__main__":
    raise SystemExit(main())
