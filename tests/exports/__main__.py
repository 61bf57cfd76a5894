"""``python -m tests.exports [KIND...]``: see the package."""

import argparse
import sys
import time
import warnings
from collections import Counter

from tests.exports.choose import NOT_COMPUTED, runtimes_for
from tests.exports.examine import REFUSED, examine, operators
from tests.exports.runtimes import RUNTIMES
from tests.exports.suite import KINDS, cases


def main() -> int:
    """Exit status 0: all that can be exported was exported right; 1: something was not."""
    parser = argparse.ArgumentParser(prog="python -m tests.exports", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"which of {', '.join(KINDS)}; all by default")
    parser.add_argument("--passes", default="default", help="the pipeline before")
    parser.add_argument("--slow", action="store_true", help="onnx.reference on light models too, which takes long")
    options = parser.parse_args()
    unknown = [kind for kind in options.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"there are no models of kind {', '.join(unknown)}")
    warnings.simplefilter("ignore")  # what the runtimes say about models
    wrong = 0
    for kind in options.kinds or KINDS:
        began = time.monotonic()
        counts: Counter[tuple[str, str]] = Counter()
        for case in cases(kind):
            print(f"\r{case.name:100.100}", end="\r", file=sys.stderr, flush=True)
            if operators(case.load()[0]) & NOT_COMPUTED:
                counts.update((runtime, REFUSED) for runtime in RUNTIMES)
                continue
            found = examine(case, list(RUNTIMES) if options.slow else runtimes_for(case), options.passes)
            counts.update(found.verdicts.items())
            wrong += bool(found.troubles)
            for trouble in found.troubles:
                print(f"{case.name}: {trouble}")
        print(f"{kind}: {len(cases(kind))} models, {time.monotonic() - began:.0f} s")
        for runtime in RUNTIMES:
            verdicts = ", ".join(f"{n} {verdict}" for (name, verdict), n in counts.most_common() if name == runtime)
            print(f"  {runtime:15} {verdicts}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
