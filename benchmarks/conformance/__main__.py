"""``python -m benchmarks.conformance``: ONNX's test suite by irc and by others, as docs/reference/conformance.md.

Every case of the installed onnx runs in irc (with the default pipeline, and
with no passes), onnx.reference and ONNX Runtime, each with one thread and in a
process of its own: a case that ends the process or takes too long fails, and
the next one runs in a new process. The page depends on nothing but the versions
of these packages.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.conformance import means
from benchmarks.conformance.cases import Case, cases, check
from benchmarks.conformance.contenders import CONTENDERS
from benchmarks.conformance.page import versions, write

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "conformance.md"
LAST = Path(__file__).parents[1] / "out" / "conformance.json"
SECONDS = 240.0
"""What a case may take, the start of its process and making the suite included."""


def passes(case: Case, contender: str) -> bool:
    """Whether a contender computes what the case expects, compared as onnx's own runner does."""
    try:
        model, data_sets = case.load()
        run = CONTENDERS[contender](model)
        for inputs, expected in data_sets:
            check(expected, list(run(inputs)), case.rtol, case.atol)
    except Exception:  # whatever a contender raises, it does not pass
        return False
    return True


def outcomes(contender: str) -> list[str]:
    """What became of each case: "passes", "fails", or "ends the process" (as does one that takes too long)."""
    found: list[str] = []
    while len(found) < len(cases()):
        found += _from(contender, len(found))
        if len(found) < len(cases()):
            found.append("ends the process")
    return found


def _from(contender: str, first: int) -> list[str]:
    """The outcomes of one process that begins with case ``first``: as many as it lived to tell."""
    command = [sys.executable, "-m", "benchmarks.conformance", "--contender", contender, "--first", str(first)]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ | threads)
    found: list[str] = []
    assert process.stdout is not None
    with process, process.stdout as lines:
        while True:
            guard = threading.Timer(SECONDS, process.kill)
            guard.start()
            line = lines.readline().decode()
            guard.cancel()
            if not line.endswith("\n"):
                return found
            found.append(line.strip())


def _work(contender: str, first: int) -> None:
    """What a process does: one line a case, to what standard output was before libraries could print there."""
    lines = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases()[first:]:
            os.write(lines, b"passes\n" if passes(case, contender) else b"fails\n")


def _last() -> dict[str, list[str]]:
    """Contender -> outcomes, of the last run with these packages."""
    if not LAST.exists() or (last := json.loads(LAST.read_text(encoding="utf-8")))["versions"] != versions():
        raise SystemExit("--only: no run of all with these packages is kept; run without")
    return last["outcomes"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conformance", description=__doc__)
    parser.add_argument(
        "-o", "--output", type=Path, default=PAGE, help="the page to write (default docs/reference/conformance.md)"
    )
    parser.add_argument("--only", choices=CONTENDERS, action="append", help="run this one; the rest as it last ran")
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        _work(options.contender, options.first)
        return
    how = [means.of(case.load()[0]) for case in cases()]
    table: dict[str, list[str]] = _last() if options.only else {}
    for contender in options.only or CONTENDERS:
        table[contender] = outcomes(contender)
        print(f"{contender}: {dict(Counter(table[contender]))}", flush=True)
    table = {contender: table[contender] for contender in CONTENDERS}
    LAST.parent.mkdir(exist_ok=True)
    LAST.write_text(json.dumps({"versions": versions(), "outcomes": table}), encoding="utf-8")
    page = write(versions(), cases(), table, how)
    options.output.write_text(page, encoding="utf-8")
    print(options.output)


if __name__ == "__main__":
    main()
