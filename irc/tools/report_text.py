"""Reports of compilations for people to read: at a glance, row by row, and as HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from textwrap import wrap

from irc.runtime.report import Report
from irc.support.formatting import amount, count, milliseconds, one_line, printable, scaled, shortened
from irc.support.remarks import NOT_FUSED

MOST_GROUPS = 8
"""How many kinds of fusion groups are listed before the rest is summed up."""


def rows(report: Report) -> list[tuple[str, str]]:
    """The report as label and text, for people to read."""
    before, after = sum(report.operators_before.values()), sum(report.operators_after.values())
    runs = [
        f"{run.name} {milliseconds(run.seconds)} ms{'' if run.changed else ' (no change)'}" for run in report.passes
    ]
    found = [
        ("model", report.name),
        ("operators", f"{before:,} before, {after:,} after"),
        ("nodes", f"{report.nodes_before:,} before, {report.nodes_after:,} after (a fusion group counts one)"),
        ("time", ", ".join(f"{stage} {milliseconds(seconds)} ms" for stage, seconds in report.seconds.items())),
        ("passes", "\n".join(runs)),
        ("fusion", fusion(report)),
        ("backend", _backend(report)),
        ("memory", memory(report)),
        ("aliasing", aliasing(report)),
    ]
    if report.fallbacks:
        kinds = ", ".join(f"{kind} ({n})" for kind, n in report.fallbacks.items())
        found.append(("slow", f"no kernel of irc's own, so onnx.reference computes them: {kinds}"))
    found.append(("notes", "\n".join(report.notes)))
    return [(label, text) for label, text in found if text]


def _backend(report: Report) -> str:
    """What computes fusion groups, and why not where it does not."""
    reasons = [f"{count(n, 'group')} left to NumPy: {reason}" for reason, n in report.declined.items()]
    return "\n".join([report.backend, *reasons]) if report.backend else ""


def fusion(report: Report) -> str:
    """How much was fused, in a line, and a line for each of the most frequent kinds of groups."""
    inside = sum(len(group.operators) for group in report.groups)
    groups, operators = count(len(report.groups), "group"), count(inside, "operator")
    kinds = Counter(" ".join(op.partition("::")[2] for op in group.operators) for group in report.groups)
    lines = [f"{n:>5,} x {operators}" for operators, n in kinds.most_common(MOST_GROUPS)]
    if len(kinds) > MOST_GROUPS:
        lines.append(f"      and {count(len(kinds) - MOST_GROUPS, 'other kind')}")
    return "\n".join([f"{groups} with {operators}; {count(_rejected(report), 'fusion')} rejected", *lines])


def memory(report: Report) -> str:
    """What running takes, in a line, and one for planned memory if that is known."""
    peak = report.memory.peak
    values = "of unknown size: not all shapes are known" if peak is None else f"at most {peak / 1e6:,.1f} MB"
    text = f"weights {report.memory.weights / 1e6:,.1f} MB, intermediate values {values}"
    arena, bound = report.memory.arena, report.memory.bound
    if arena is None or bound is None:
        return text
    return f"{text}\nplanned: {arena / 1e6:,.1f} MB for results, of which at least {bound / 1e6:,.1f} MB are needed"


def aliasing(report: Report) -> str:
    """Facts of the alias analysis, in a line."""
    return ", ".join(count(n, what.removesuffix("s")) for what, n in report.alias.items())


def _rejected(report: Report) -> int:
    return sum(remark.what == NOT_FUSED for remark in report.remarks)


def html(report: Report) -> str:
    """The rows as a table."""
    texts = ((label, escape(printable(text)).replace("\n", "<br/>")) for label, text in rows(report))
    cells = "".join(f'<tr><th>{label}</th><td style="text-align:left">{text}</td></tr>' for label, text in texts)
    return f"<table>{cells}</table>"


def at_a_glance(report: Report, width: int = 80) -> str:
    """The report in at most 25 lines of ``width`` characters, at least 40; `rows` has the rest."""
    return "\n".join(_Glance(report, width).lines())


HEIGHT = 25
"""Lines of a report at a glance."""

MOST_LISTED = 3
"""How many inputs it names, and outputs; if there are more, one less."""

MOST_NOTES = 4
"""How many lines of notes it has."""


class _Glance:
    """A report at a glance: what changed from before to after, what goes in and out, and the main facts."""

    def __init__(self, report: Report, width: int) -> None:
        self._report = report
        self._width = width
        self._label = min(20, width - 26)

    def lines(self) -> list[str]:
        """At most `HEIGHT` lines: operators that changed take those that nothing else needs."""
        above, below = self._above(), self._below()
        return [*above, *self._changed(HEIGHT - len(above) - len(below)), *below]

    def _above(self) -> list[str]:
        report, before, after = self._report, self._report.before, self._report.after
        lines = [self._line("model", report.name), self._compared("", ["before", "after"])]
        if before.bytes is not None or after.bytes is not None:
            lines.append(
                self._compared("files", ["-" if t.bytes is None else amount(t.bytes) for t in (before, after)])
            )
        lines.append(self._compared("parameters", [_digits(t.parameters) for t in (before, after)]))
        notes = ["at least"] if before.uncounted or after.uncounted else []
        notes += [f"{name}={size}" for name, size in report.sizes.items()]
        lines.append(self._compared("FLOPs", [scaled(t.flops) for t in (before, after)], ", ".join(notes)))
        counts = report.operators_before, report.operators_after
        return [*lines, self._compared("operators", [_digits(sum(each.values())) for each in counts])]

    def _changed(self, most: int) -> list[str]:
        """A line for each operator whose number changed, and one for all others."""
        before, after = Counter(self._report.operators_before), Counter(self._report.operators_after)
        kinds = sorted(before | after, key=lambda kind: (-abs(before[kind] - after[kind]), kind))
        named = [kind for kind in kinds if before[kind] != after[kind]][: most - 1]
        rows = [(kind.removeprefix("onnx::"), [kind]) for kind in named]
        if rest := kinds[len(named) :]:
            rows.append((count(len(rest), "other kind"), rest))
        sums = ([sum(counts[kind] for kind in each) for counts in (before, after)] for _, each in rows)
        return [self._compared(f"  {label}", [*map(_digits, each)]) for (label, _), each in zip(rows, sums)]

    def _below(self) -> list[str]:
        report = self._report
        nodes = [_digits(n) for n in (report.nodes_before, report.nodes_after)]
        lines = [self._compared("nodes", nodes, "a fusion group counts as one" if report.groups else "")]
        for label, names in (("inputs", report.inputs), ("outputs", report.outputs)):
            shown = names if len(names) <= MOST_LISTED else [*names[: MOST_LISTED - 1], f"... {len(names)} in all"]
            lines += self._labelled(label, shown)
        rejected = " rejected (see --explain)" if any(r.what == NOT_FUSED for r in report.remarks) else " rejected"
        fused = fusion(report).split("\n")[0].partition(" fusion")[0] + rejected
        seconds = ", ".join(f"{stage} {milliseconds(s)} ms" for stage, s in report.seconds.items())
        slow = f"onnx.reference computes {', '.join(report.fallbacks)}" if report.fallbacks else ""
        for label, text in (("fusion", fused), ("memory", self._memory()), ("time", seconds), ("slow", slow)):
            lines += self._labelled(label, [text] if text else [])
        notes = [line for note in report.notes for line in wrap(one_line(note), self._width - self._label)]
        if len(notes) > MOST_NOTES:  # the last ones say what was checked and written
            left = len(report.notes) - MOST_NOTES
            notes = [f"... {left + 1} others", *report.notes[1 - MOST_NOTES :]] if left > 0 else report.notes
        return [*lines, *self._labelled("notes", notes)]

    def _memory(self) -> str:
        memory = self._report.memory
        values = "of unknown size" if memory.peak is None else f"at most {amount(memory.peak)}"
        planned = "" if memory.arena is None else f", planned {amount(memory.arena)}"
        return f"weights {amount(memory.weights)}, values {values}{planned}"

    def _labelled(self, label: str, texts: Sequence[str]) -> list[str]:
        return [self._line("" if i else label, text) for i, text in enumerate(texts)]

    def _line(self, label: str, text: str) -> str:
        return shortened(f"{label:<{self._label}}{one_line(text)}".rstrip(), self._width)

    def _compared(self, label: str, numbers: Sequence[str], more: str = "") -> str:
        columns = "".join(f"{number:>13}" for number in numbers)
        name = shortened(one_line(label), self._label)
        return shortened(f"{name:<{self._label}}{columns}{f'  ({one_line(more)})' if more else ''}", self._width)


def _digits(n: int) -> str:
    return f"{n:,}" if n < 10**9 else scaled(n)
