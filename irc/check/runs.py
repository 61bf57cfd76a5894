"""Chooses the runs that a check compares: of which sizes, on which values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.ir.fixed_sizes import sizes_text
from irc.random_inputs import Style, given_sizes
from irc.random_inputs.fitting import MOST_WORK, Fitting, Made, make_or_explain
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from irc.ir import Graph
    from irc.runtime.model import CompiledModel

FIRST_SIZES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
"""Sizes of the first run: no two axes have the same, so that a wrong axis shows; none is 1, which hides reductions."""

OTHER_SIZES = (3, 2, 7, 5, 13, 11, 19, 17, 29, 23)
"""Sizes of other runs."""

TIMES_OF_ONES = 3
"""How much more than a run with all sizes 1 a larger one may compute, if both compute much."""


@dataclass(frozen=True)
class Run:
    """One run of a check.

    Attributes:
        feeds: the inputs by name.
        seed: what they were made up from.
        sizes: named dimensions, and unnamed ones by input and axis (``x[0]``), with their sizes.
        style: which values the inputs have that were made up.
        results: the outputs of the compiled model.
    """

    feeds: Mapping[str, Any]
    seed: int
    sizes: Mapping[str, int]
    style: Style
    results: Mapping[str, Any]

    def __str__(self) -> str:
        edges = "large and tiny numbers" if self.style is Style.EDGES else ""
        return ", ".join(filter(None, (sizes_text(self.sizes), edges))) or f"seed {self.seed}"


def runs(
    model: CompiledModel, source: Graph, seeds: Sequence[int], sizes: Mapping[str, int], given: Mapping[str, Any]
) -> Iterator[Run]:
    """Run ``model`` for each seed, with other sizes and values each time, and once with all free sizes 1.

    Args:
        model: the compiled model.
        source: the graph that it was compiled from, which says what inputs may be: a wrong pass must not say that.
        seeds: one run each, or one alone if nothing is to be made up.
        sizes: sizes of named dimensions that are not chosen.
        given: values of inputs by name; the others are made up.

    Raises:
        Error: IRC102 an input cannot be made up; IRC4xx the model runs on none of the inputs that were tried.
    """
    taken = given_sizes(model.inputs, given)
    fitting = Fitting(model, given, {**model.sizes, **taken, **sizes}, graph=source)
    if not fitting.made_up:
        seeds = seeds[:1]
    wanted = _affordable(fitting, FIRST_SIZES)
    made: Made | None = None
    seen: list[tuple[int, ...]] = []
    for seed, style in zip(seeds, (Style.MIXED, *[Style.EDGES] * len(seeds))):
        if made is not None:
            wanted = _others(fitting, made, wanted)
        made = (
            make_or_explain(fitting, seed, wanted, style)
            if made is None
            else _made_again(fitting, seed, wanted, style, made)
        )
        run = _run(model, made, given, seed, style if fitting.made_up else Style.PLAIN, taken)
        if style is Style.EDGES and _says_nothing(run.results):
            made = make_or_explain(fitting, seed, made.sizes, Style.MIXED)
            run = _run(model, made, given, seed, Style.MIXED, taken)
        seen.append(tuple(made.sizes.values()))
        yield run
    ones = dict.fromkeys(fitting.free, 1)
    attempt = fitting.attempt(ones, seeds[0], Style.PLAIN) if fitting.free and len(seeds) else None
    if attempt is not None and attempt.made is not None and tuple(attempt.made.sizes.values()) not in seen:
        yield _run(model, attempt.made, given, seeds[0], Style.PLAIN, taken)


def _affordable(fitting: Fitting, sizes: Sequence[int]) -> dict[str, int]:
    """``sizes`` for the free names in turn; smaller ones if the model computes too much for these."""
    ones = dict.fromkeys(fitting.free, 1)
    most = max(MOST_WORK, TIMES_OF_ONES * fitting.work(ones))
    for choice in (sizes, (2, 3), (2,)):
        wanted = {name: choice[i % len(choice)] for i, name in enumerate(fitting.free)}
        if fitting.work(wanted) <= most:
            return wanted
    return ones


def _others(fitting: Fitting, made: Made, wanted: Mapping[str, int]) -> dict[str, int]:
    """Sizes for a further run: others of those that the model took as ``wanted``, twice what else it took."""
    other = _affordable(fitting, OTHER_SIZES)
    took = {name: made.sizes[name] for name in fitting.free}
    most = max(MOST_WORK, 2 * fitting.work(took))
    doubled = {name: other[name] if took[name] == wanted[name] else 2 * took[name] for name in took}
    kept = {name: other[name] if took[name] == wanted[name] else took[name] for name in took}
    for choice in (doubled, kept, other):
        if fitting.accepts(choice, most):
            return choice
    return took


def _made_again(fitting: Fitting, seed: int, wanted: Mapping[str, int], style: Style, before: Made) -> Made:
    """Inputs for a further run; of the sizes of the run ``before`` if the model accepts no others that are tried."""
    try:
        return make_or_explain(fitting, seed, wanted, style)
    except Error:
        return make_or_explain(fitting, seed, before.sizes, style)


def _run(
    model: CompiledModel, made: Made, given: Mapping[str, Any], seed: int, style: Style, taken: Mapping[str, int]
) -> Run:
    feeds = {**made.feeds, **given}
    results = model.run(feeds) if made.results is None else made.results
    return Run(feeds, seed, {**taken, **made.sizes}, style, results)


def _says_nothing(results: Mapping[str, Any]) -> bool:
    """Whether most numbers of an output are none."""
    floats = [x for x in results.values() if is_array(x) and x.dtype.kind in "fc" and x.size]
    return any(np.isnan(x).mean() > 1 / 2 for x in floats)
