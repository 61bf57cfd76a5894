"""``python -m benchmarks.runtime [NAME...]``: what running takes, beside ONNX Runtime and others, in minutes.

Each benchmark prints its rows and keeps them, with facts about the machine, in
benchmarks/out. ``python -m benchmarks.compare`` compares them with the baseline.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

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
    names = parser.parse_args().names or [*BENCHMARKS]
    if unknown := set(names) - set(BENCHMARKS):
        parser.error(f"unknown benchmarks: {', '.join(sorted(unknown))}")
    print(*peers.absent(), sep="\n")
    for name in names:
        print(f"\n{name}", flush=True)
        begin = time.perf_counter()
        rows = BENCHMARKS[name]()
        if name not in TABLES:
            results.show(rows)
        print(f"{results.save(f'runtime-{name}', rows)}, {time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
