"""``python -m irc.demo``: compile a real model, show what happened to it, run it, check it."""

import sys

from irc.cli import finished

MODEL = "squeezenet"


def main() -> int:
    """The exit status: 0 if the compiled model tells two inputs apart and agrees with the oracle on both."""
    import numpy as np

    import irc
    from irc.demo.models import bundled_model, randomize_weights, seeded_inputs
    from irc.tools.check import Tolerance, difference
    from irc.tools.check.oracles import Oracles

    source = randomize_weights(bundled_model(MODEL), seed=0)
    print(f"{MODEL} of the onnx package, with seeded random weights: {len(source.graph.node)} nodes\n")
    model = irc.compile(source)
    print(model.report, "\n")

    (name,) = (output.name for output in model.outputs)
    feeds = [seeded_inputs(source, seed) for seed in (1, 2)]
    results = [model.run(feed)[name] for feed in feeds]
    oracles, right = Oracles(source), True
    for number, (feed, found) in enumerate(zip(feeds, results, strict=True), 1):
        oracle, wanted = oracles.ask(feed, [name])
        error, close = difference(found, wanted[name], Tolerance())
        right &= close
        best = int(found.argmax())
        off = f"max error {error:.1e} relative to max|ref| ({oracle.name})"
        print(f"input {number}: class {best}, probability {found.flat[best]:.4f}; {off}")
    apart = float(np.abs(results[0] - results[1]).max())
    print(f"the two outputs differ by up to {apart:.4f}")

    if not right:
        print(f"FAILED: an output is not what {oracles.used[0].name} computes", file=sys.stderr)
    if not apart:
        print("FAILED: both inputs give the same output", file=sys.stderr)
    return 0 if right and apart else 1


def _command() -> int:
    from irc.cli.output import Parser, parsed

    parsed(Parser(prog="python -m irc.demo", description=(__doc__ or "").partition(": ")[2].capitalize()))
    return main()


if __name__ == "__main__":
    sys.exit(finished(_command))
