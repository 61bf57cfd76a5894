"""``python -m benchmarks.runtime [NAME...]``: what running takes, beside ONNX Runtime and others, in minutes.

Each benchmark prints its rows and keeps them, with facts about the machine, in
benchmarks/out. ``python -m benchmarks.compare`` compares them with the baseline.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

from benchmarks import peers, results
from benchmarks.results import Row
from benchmarks.runtime import attention, caches, chain, decoder, kernels, memory, models, native, passes, quantized

BENCHMARKS: dict[str, Callable[[], list[Row]]] = {
    "kernels": kernels.measure,
    "chain": chain.measure,
    "caches": caches.measure,
    "decoder": decoder.measure,
    "attention": attention.measure,
    "memory": memory.measure,
    "models": models.measure,
    "native": native.measure,
    "passes": passes.measure,
    "quantized": quantized.measure,
}
"""Name -> what measures it."""

TABLES = ("memory", "models", "passes")
"""Those that print tables of their own."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runtime", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these, of {', '.join(BENCHMARKS)}")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of native: so many of each contender")
    given = parser.parse_args()
    names = given.names or [*BENCHMARKS]
    measures, several = dict(BENCHMARKS), f"-{given.threads}" if given.threads > 1 else ""
    if several:
        if names != ["native"]:
            parser.error("--threads is of native alone")
        measures["native"] = partial(native.measure, threads=given.threads)
    if unknown := set(names) - set(BENCHMARKS):
        parser.error(f"unknown benchmarks: {', '.join(sorted(unknown))}")
    print(*peers.absent(), sep="\n")
    for name in names:
        print(f"\n{name}", flush=True)
        begin = time.perf_counter()
        rows = measures[name]()
        if name not in TABLES:
            results.show(rows)
        print(f"{results.save(f'runtime-{name}{several}', rows)}, {time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
