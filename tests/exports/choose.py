"""Which models ``make test`` takes, and which cannot be exported."""

from collections.abc import Iterable, Iterator

from tests.exports.examine import operators
from tests.exports.runtimes import RUNTIMES
from tests.exports.suite import Case

EVERY = 6
LIGHTEST = ("light_squeezenet", "light_shufflenet")
"""They have 5 and 6 MB of weights; others have up to 550."""

LARGE = 50_000
"""Elements of inputs that are too many for onnx.reference in ``make test``."""

NOT_COMPUTED = {"ai.onnx.preview.training::Gradient"}
"""irc refuses models with these operators, so there is nothing to export."""


def short(cases: Iterable[Case]) -> Iterator[Case]:
    """Every sixth case, and the first one of each operator; of the light models the lightest."""
    seen: set[str] = set()
    for number, case in enumerate(cases):
        if case.kind == "light":
            if case.name in LIGHTEST:
                yield case
            continue
        new = operators(case.load()[0]) - seen
        if new or number % EVERY == 0:
            seen |= new
            yield case


def runtimes_for(case: Case, is_short: bool = False) -> list[str]:
    """Who is asked: all, but onnx.reference takes minutes for a light model, and seconds to pool a large volume."""
    if case.kind == "light" or (is_short and _elements(case) > LARGE):
        return [name for name in RUNTIMES if name != "onnx.reference"]
    return list(RUNTIMES)


def _elements(case: Case) -> int:
    _, sets = case.load()
    return sum(getattr(value, "size", 0) for feeds in sets for value in feeds.values())
