"""Running many programs: what was exercised, or the smallest one that the analysis is wrong about."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.changes import Change, change, changes
from tests.fuzz.watcher import TooMuch, Watcher
from tests.programs.generator import FEATURES, Program, programs
from tests.programs.interpreter import interpret

BATCH = 500
"""Examples drawn in one go. Hypothesis remembers what it drew, and slows down."""

_LEFT_OUT = ("products", "axes", "shapes", "numbers", "onnx logic", "again", "torch metadata")
_TWICE = ("torch writes", "lists of lists", "dictionaries", "branches", "loops", "calls", "anything", "unions")
FOCUS = (*(f for f in FEATURES if f not in _LEFT_OUT), *_TWICE)
"""The steps that programs are made of: those that share memory, write, and hold, rather than others."""

SIZE = 32
"""Steps a program."""

WANTED = (
    "overlaps",
    "overlaps inside containers",
    "certain overlaps",
    "writes",
    "writes through containers",
    "writes between two nodes",
    "loops without an iteration",
    "loops of one iteration",
    "longer loops",
    "branches",
    "calls",
    "optionals",
    "unions",
    "changes",
)
"""What must have been exercised for a run to mean anything."""

_NAMES = {
    "shared": "overlaps",
    "shared inside": "overlaps inside containers",
    "must": "certain overlaps",
    "writes": "writes",
    "writes inside": "writes through containers",
    "writes between": "writes between two nodes",
}


@dataclass
class Failure:
    """The smallest program found that the analysis is wrong about, and what was done to it before."""

    program: Program
    steps: list[Change]
    message: str

    def __str__(self) -> str:
        changed = f"\n\nchanged by {self.steps}" if self.steps else ""
        return f"{self.message}{changed}\n\n{self.program!r}"


@dataclass
class Outcome:
    """What a fuzzing run did.

    Attributes:
        programs: how many programs were run.
        seen: what was exercised, summed over them.
        failure: None if the analysis was right all along.
    """

    programs: int = 0
    seen: Counter[str] = field(default_factory=Counter[str])
    failure: Failure | None = None

    def missing(self) -> list[str]:
        """What was never exercised."""
        return [what for what in WANTED if not self.seen[what]]


def check(program: Program, steps: Sequence[Change] = ()) -> Counter[str]:
    """Run one program, change it, and run it again with the analysis that the changes have kept.

    AssertionError where the analysis denies what happens to memory.
    """
    seen = _watch(program, Watcher(program.module))
    if steps:
        module = program.module.copy()
        db = change(module, steps, seen)
        changed = replace(program, module=module)
        seen += _watch(changed, Watcher(module, {module.main: db}))
    return Counter({_NAMES.get(what, what): n for what, n in seen.items()})


def _watch(program: Program, watcher: Watcher) -> Counter[str]:
    try:
        interpret(program.graph, program.inputs(), watcher)
    except TooMuch:
        watcher.seen["stopped early"] += 1
    return watcher.seen


def fuzz(
    examples: int,
    start: int = 0,
    features: tuple[str, ...] = FOCUS,
    shrink: bool = True,
    progress: Callable[[Outcome], None] = lambda _: None,
) -> Outcome:
    """Run ``examples`` programs that ``start`` determines; stop at the first that the analysis is wrong about."""
    outcome = Outcome()
    for batch in range(0, examples, BATCH):
        _batch(outcome, min(BATCH, examples - batch), start * 1_000_003 + batch, features, shrink)
        progress(outcome)
        if outcome.failure is not None:
            break
    return outcome


def _batch(outcome: Outcome, examples: int, number: int, features: tuple[str, ...], shrink: bool) -> None:
    """One run of hypothesis."""
    smallest: list[Failure] = []

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(programs(features, SIZE), changes)
    def examine(program: Program, steps: list[Change]) -> None:
        try:
            seen = check(program, steps)
        except AssertionError as error:
            smallest[:] = [Failure(program, steps, str(error))]  # hypothesis ends with the smallest
            raise
        if not smallest:
            outcome.programs += 1
            outcome.seen += seen

    try:
        examine()
    except AssertionError:
        outcome.failure = smallest[0]
