"""``python -m benchmarks``: everything that is measured in minutes, against the peers that are installed.

Real models against other optimisers and runtimes; alias analysis and fusion
against PyTorch on the same graphs; growth of time and memory. Results are
kept as JSON in benchmarks/out, and ``python -m benchmarks.compare`` compares
them with the baseline.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks import graphs, growth, models, peers, queries, results
from benchmarks.results import Row


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"only these, of {', '.join(models.NAMES)}")
    parser.add_argument("--turns", type=int, default=5, help="how often each contender is timed (default 5)")
    parser.add_argument("--full", action="store_true", help="growth up to 1,000,000 nodes, which takes an hour")
    options = parser.parse_args()
    unknown = set(options.models) - set(models.NAMES)
    if unknown or options.turns < 1:
        parser.error(f"unknown models: {', '.join(sorted(unknown))}" if unknown else "--turns must be at least 1")
    logging.disable(logging.WARNING)  # some tools warn about every weight
    print(*peers.absent(), sep="\n")
    parts: list[Callable[[], Path]] = [lambda: _models(options.models or models.DEFAULT, options.turns)]
    if not options.models:
        parts.append(lambda: results.save("graphs", graphs.measure(options.turns)))
        parts.append(_queries)
        parts.append(lambda: growth.run(growth.NAMES, growth.SIZES[-1] if options.full else growth.QUICK))
    for part in parts:
        begin = time.perf_counter()
        print(f"\n{part()}, {time.perf_counter() - begin:.0f} s", flush=True)


def _models(names: Iterable[str], turns: int) -> Path:
    return results.save("models", [row for name in names for row in models.measure(name, turns)])


def _queries() -> Path:
    asked = queries.rows()
    queries.show(asked)
    return results.save("queries", (Row(row.name, row.base, "s", row.ratio) for row in asked))


if __name__ == "__main__":
    main()
