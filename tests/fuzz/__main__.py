"""``python -m tests.fuzz [N] [SEED]``: see ``make fuzz``."""

import argparse
import sys
import time

from tests.fuzz.run import Outcome, fuzz


def main() -> int:
    """Exit status 0: the analysis was right; 1: it was not, or something was never exercised."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("examples", nargs="?", type=int, default=2000, help="how many programs to run")
    parser.add_argument("seed", nargs="?", type=int, default=0, help="which ones")
    arguments = parser.parse_args()
    began = time.monotonic()

    def tell(outcome: Outcome) -> None:
        rate = outcome.programs / (time.monotonic() - began)
        print(f"{outcome.programs} of {arguments.examples} programs, {rate:.0f} a second", file=sys.stderr, flush=True)

    outcome = fuzz(arguments.examples, arguments.seed, progress=tell)
    print(f"{outcome.programs} programs (seed {arguments.seed}) were run on real memory")
    for what, count in sorted(outcome.seen.items()):
        print(f"{count:12,}  {what}")
    if outcome.failure is not None:
        print(f"\nThe alias analysis is wrong about this program:\n{outcome.failure}")
        return 1
    missing = outcome.missing()
    if missing:
        print(f"\nNever exercised: {', '.join(missing)}")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
