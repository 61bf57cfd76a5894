"""The ladder's results: as tables, as rows to keep and compare, and as a plot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import facts
from benchmarks.yolov3.ladder import PATIENCE, RUNGS, Climb, measure
from benchmarks.yolov3.rungs.counters import PHASES, Counters

OUT = Path(__file__).parent / "out"
"""Where the plot goes."""

COUNTERS = tuple(Counters().to_dict())

Climbs = Mapping[int, Climb]
"""Rung -> what it did."""


def run(subjects: Sequence[str], numbers: Sequence[int], turns: int, copies: int) -> None:
    """Climb; print, keep and, if matplotlib is installed, draw what came of it."""
    found: dict[str, Climbs] = {}
    for subject in subjects:
        found[subject] = measure(subject, numbers, turns, copies)
        print("\n".join(table(f"YOLOv3 {subject}" + f", {copies} in one graph" * (copies > 1), found[subject])))
    rows = [row for subject, climbs in found.items() for row in rows_of(f"{subject}.x{copies}", climbs)]
    climbs = {subject: [details(climbs, number) for number in climbs] for subject, climbs in found.items()}
    name = f"ladder-x{copies}" if copies > 1 else "ladder"
    path = facts.save(name, {"copies": copies, "rows": rows, "rungs": climbs})
    print(f"\nall rungs end with the same fused graphs\n{path}")
    if facts.version("matplotlib") is None:
        print("matplotlib is not installed: no plot")
    else:
        OUT.mkdir(exist_ok=True)
        plot(found, OUT / f"{name}.png")
        print(OUT / f"{name}.png")


def factor(climbs: Climbs, number: int) -> float | None:
    """How many times faster a rung is than the one below it that was climbed."""
    below = _below(climbs, number)
    return None if below is None else climbs[below].seconds / climbs[number].seconds


def anchor_factor(climbs: Climbs, number: int) -> float | None:
    """The same for PyTorch."""
    below = _below(climbs, number)
    return None if below is None else RUNGS[below].anchor / RUNGS[number].anchor


def table(title: str, climbs: Climbs) -> Iterator[str]:
    """Lines: seconds, factors and counters by rung, then seconds by pass and by phase."""
    yield f"\n{title}\n"
    yield _line("rung", "seconds", "factor", "PyTorch", "factor", *COUNTERS, "idea")
    for number, climb in climbs.items():
        rung = RUNGS[number]
        factors = [f"{x:.2f}" if (x := f(climbs, number)) else "" for f in (factor, anchor_factor)]
        counted = [f"{n:,}" for n in climb.counters.to_dict().values()]
        seconds = f"{climb.seconds:.3f}"
        yield _line(str(number), seconds, factors[0], f"{rung.anchor:.1f}", factors[1], *counted, rung.idea)
    first, *_, last = [*climbs]
    total, anchor = climbs[first].seconds / climbs[last].seconds, RUNGS[first].anchor / RUNGS[last].anchor
    yield f"\nrung {first} to {last}: {total:.1f} times faster; PyTorch {anchor:.1f} times"
    counts = ", ".join(f"{climb.turns} of rung {number}" for number, climb in climbs.items())
    yield f"medians of turns: {counts} (what takes over {PATIENCE:.0f} s is measured once)"
    yield "\n" + _line("seconds", *map(str, climbs))
    passes = dict.fromkeys(name for climb in climbs.values() for name in climb.passes)
    for name in passes:
        yield _line(name, *(f"{climb.passes.get(name, 0.0):.3f}" for climb in climbs.values()))
    yield ""
    for phase in PHASES:
        yield _line(phase, *(f"{climb.phases[phase]:.3f}" for climb in climbs.values()))


def rows_of(subject: str, climbs: Climbs) -> Iterator[dict[str, Any]]:
    """What is compared with other results: less is better. Lower rungs count as peers of the last."""
    last = [*climbs][-1]
    for number, climb in climbs.items():
        ratio = None if number == last else climbs[last].seconds / climb.seconds
        yield {"name": f"{subject}/rung {number}", "value": climb.seconds, "unit": "s", "ratio": ratio}
    for key, count in climbs[last].counters.to_dict().items():
        yield {"name": f"{subject}/rung {last} {key}", "value": count, "unit": "count", "ratio": None}


def details(climbs: Climbs, number: int) -> dict[str, Any]:
    """All that is known of one rung."""
    climb = climbs[number]
    return {
        "rung": number,
        "idea": RUNGS[number].idea,
        "seconds": climb.seconds,
        "turns": climb.turns,
        "factor": factor(climbs, number),
        "anchor_seconds": RUNGS[number].anchor,
        "anchor_factor": anchor_factor(climbs, number),
        "counters": climb.counters.to_dict(),
        "passes": climb.passes,
        "phases": climb.phases,
    }


def plot(found: Mapping[str, Climbs], path: Path) -> None:
    """Draw seconds beside PyTorch's, the phases they went to, and the counters."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 1 + 2 * len(found), figsize=(4 + 7.5 * len(found), 4.2), layout="constrained")
    time, *others = axes
    ticks = range(len(RUNGS))
    time.plot(ticks, [rung.anchor for rung in RUNGS], marker="x", color="grey", label="PyTorch's pull requests")
    for subject, climbs in found.items():
        time.plot([*climbs], [c.seconds for c in climbs.values()], marker="o", label=f"YOLOv3 {subject}")
        phases, counters = others[:2]
        del others[:2]
        bottom = [0.0] * len(climbs)
        for phase in PHASES:
            heights = [c.phases[phase] / sum(c.phases.values()) for c in climbs.values()]
            phases.bar([*climbs], heights, bottom=bottom, label=phase)
            bottom = [b + h for b, h in zip(bottom, heights)]
        phases.set(title=f"{subject}: share of time by phase", ylim=(0, 1))
        for key in COUNTERS:
            counts = [c.counters.to_dict()[key] for c in climbs.values()]
            counters.plot([*climbs], counts, marker="o", label=key)
        counters.set(title=f"{subject}: counters")
        counters.set_yscale("symlog", linthresh=1)
    time.set(title="seconds", yscale="log")
    for a in axes:
        a.set(xlabel="rung", xticks=list(ticks))
        a.legend(fontsize=8)
        a.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _below(climbs: Climbs, number: int) -> int | None:
    return max((n for n in climbs if n < number), default=None)


def _line(first: str, *cells: str) -> str:
    *numbers, last = cells
    return (
        f"{first:16}" + "".join(f"{cell:>15}" for cell in numbers) + (f"{last:>15}" if _numeric(last) else f"  {last}")
    )


def _numeric(cell: str) -> bool:
    return cell[:1].isdigit()
