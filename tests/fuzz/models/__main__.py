"""``python -m tests.fuzz.models N SEED``: try N mutants; ``... N SEED NUMBER`` writes one to mutant-NUMBER.onnx."""

import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.models.mutate import mutant
from tests.fuzz.models.run import Outcome, fuzz
from tests.fuzz.models.seeds import SEEDS, serialized


def main() -> int:
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    if len(sys.argv) > 3:
        number = int(sys.argv[3])
        name, mutation, data = mutant([*SEEDS], serialized, number, seed)
        Path(f"mutant-{number}.onnx").write_bytes(data)
        print(f"mutant-{number}.onnx: {name}, {mutation}")
        return 0
    start = time.monotonic()
    told = 0

    def progress(number: int, outcome: Outcome) -> None:
        nonlocal told
        for failure in outcome.failures[told:]:
            print(*failure[:4], failure[4][-1500:], sep=" | ", flush=True)
        told = len(outcome.failures)
        if (number + 1) % 1000 == 0:
            print(f"{number + 1} mutants, {time.monotonic() - start:.0f} s, {told} wrong", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        outcome = fuzz(range(count), seed, Path(folder), progress)
    print(outcome)
    print(f"slowest: {outcome.slowest[0]:.1f} s, number {outcome.slowest[1]}")
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
