"""Reports for people, on stderr: tables of `irc compile` and its explanations, and of profiles."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from irc.runtime.profile import GroupProfile, Profile, headlines, ms
from irc.runtime.report import Report
from irc.support.formatting import count, milliseconds, printable
from irc.support.remarks import PassRun, Remark
from irc.tools import report_text

MOST_ROWS = 16
"""How many rows a table has before it sums up the rest."""

Format = Callable[[int], str] | None

NARROWEST = 40
"""For how many characters a line reports are laid out at least."""


def print_report(report: Report, verbose: bool = False) -> None:
    """Print a report on stderr: a summary, or if ``verbose``, all of it; in colour on a terminal."""
    console = new_console(NARROWEST)
    text = Text(report_text.at_a_glance(report, min(80, console.width)))
    text.highlight_regex(r"(?m)^\w+", "bold")
    console.print(text, soft_wrap=True)
    if verbose:
        print(file=sys.stderr)
        _print_sections(_sections(report), NARROWEST)


def _print_sections(sections: Iterable[tuple[str, RenderableType]], narrowest: int) -> None:
    """Print labels beside their contents, laid out for at least ``narrowest`` characters a line."""
    grid = Table.grid(padding=(0, 2, 1, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, content in sections:
        grid.add_row(label, plain(content) if isinstance(content, str) else content)
    new_console(narrowest).print(grid)


def _sections(report: Report) -> Iterator[tuple[str, RenderableType]]:
    """The rows of the report; operators and passes as tables, which say more."""
    tables = {"operators": _operators(report), "passes": _passes(report.passes)}
    for label, text in report_text.rows(report):
        if label != "nodes":  # these are in the table of operators
            yield label, tables.get(label, text)


def _operators(report: Report) -> RenderableType:
    """A row for each kind of operator, those that changed most first; constants are not counted."""
    before, after = Counter(report.operators_before), Counter(report.operators_after)
    kinds = sorted(before | after, key=lambda kind: (-abs(before[kind] - after[kind]), -before[kind], kind))
    rows = [(_bare(kind), before[kind], after[kind]) for kind in kinds]
    table = _first_rows(rows, {"operator": None, ">before": _digits, ">after": _digits})
    table.add_section()
    table.add_row("in all", f"{before.total():,}", f"{after.total():,}")
    table.add_row("top level", f"{report.nodes_before:,}", f"{report.nodes_after:,}")
    return Group(table, plain("top level: without what is inside groups and blocks", "dim"))


def _passes(timings: list[PassRun]) -> RenderableType:
    table = new_table("pass", ">ms", ">runs", ">changed")
    for name in dict.fromkeys(timing.name for timing in timings):  # in the order of their first runs
        runs = [timing for timing in timings if timing.name == name]
        seconds, changed = sum(run.seconds for run in runs), sum(run.changed for run in runs)
        table.add_row(plain(name), milliseconds(seconds), str(len(runs)), str(changed or "-"))
    table.add_section()
    table.add_row("in all", milliseconds(sum(t.seconds for t in timings)), str(len(timings)), "")
    return table


def print_explained(stats: Mapping[str, int], remarks: Iterable[Remark], wanted: str = "") -> None:
    """Print on stderr what passes have counted, then what was left as it was: by pass, then by node.

    With ``wanted``, a pass or a node, only what concerns that.
    """
    lines = [f"{what}: {number:,}" for what, number in stats.items() if not wanted or what.startswith(f"{wanted}.")]
    passes: dict[str, dict[str, list[str]]] = {}
    found = [remark for remark in remarks if not wanted or remark.concerns(wanted)]
    for remark in found:
        passes.setdefault(remark.pass_name, {}).setdefault(remark.where, []).extend(remark.lines())
    for name, places in passes.items():
        lines.append(f"{name}: {count(sum(remark.pass_name == name for remark in found), 'remark')}")
        for where, told in places.items():
            lines.append(f"  {where}")
            lines += [f"    {line}" for line in told]
    if not passes:
        lines.append(f"no remarks on {wanted}" if wanted else "no remarks")
    print(printable("\n".join(lines)), file=sys.stderr)


def new_console(narrowest: int) -> Console:
    """Stderr, in colour on a terminal. In a narrow one, long lines overflow instead of losing columns."""
    console = Console(stderr=True, highlight=False)
    console.width = max(console.width, narrowest)
    return console


def new_table(*headers: str) -> Table:
    """An empty table; columns whose header begins with ``>`` are for numbers."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for header in headers:
        if header.startswith(">"):
            table.add_column(header[1:], justify="right", no_wrap=True)
        else:
            table.add_column(header, overflow="fold")
    return table


def _first_rows(rows: Sequence[Sequence[Any]], columns: Mapping[str, Format], others: str = "other kinds") -> Table:
    """A table of the first `MOST_ROWS` of ``rows``, and of the sums of the numbers in the others.

    Args:
        rows: texts and numbers.
        columns: header -> how numbers are written; None: these are texts.
        others: what the others are called.
    """
    table = new_table(*columns)
    for row in rows[:MOST_ROWS]:
        table.add_row(*(cell if write is None else write(cell) for write, cell in zip(columns.values(), row)))
    if rest := rows[MOST_ROWS:]:
        _, *numbers = zip(columns.values(), zip(*rest))
        table.add_row(f"{len(rest)} {others}", *("" if write is None else write(sum(n)) for write, n in numbers))
    return table


def _digits(number: int) -> str:
    return f"{number:,}"


def _times(whole: int) -> dict[str, Format]:
    """The columns of a time, and of its share in the ``whole``."""
    return {">ms": ms, ">share": lambda part: _share(part, whole)}


def plain(text: str, style: str = "") -> Text:
    """Plain text: names in models may look like markup or hold control characters."""
    return Text(printable(text), style)


def _bare(kind: str) -> Text:
    """What tables call an operator."""
    return plain(kind.removeprefix("onnx::"))


# ``irc run --profile``: what a run spent its time and memory on, as tables on stderr.


NARROWEST_PROFILE = 60
"""For how many characters a line profiles are laid out at least."""


def print_profile(profile: Profile) -> None:
    """Print a profile, in colour if stderr is a terminal."""
    _print_sections(_profile_sections(profile), NARROWEST_PROFILE)


def _profile_sections(profile: Profile) -> Iterable[tuple[str, RenderableType]]:
    yield "run", plain(headlines(profile))
    yield "operators", _profiled_operators(profile)
    yield "results", _results(profile)
    yield "nodes", _nodes(profile)
    if groups := profile.by_group():
        yield "groups", _groups(profile, groups)


def _profiled_operators(profile: Profile) -> RenderableType:
    rows = [(_bare(row.kind), row.own, row.own, row.nodes, row.calls, row.bytes) for row in profile.by_operator()]
    columns = {"operator": None, **_times(profile.own), ">nodes": _digits, ">calls": _digits, ">bytes": _digits}
    table = _first_rows(rows, columns)
    said = "each by itself: an If without its branch, a group without its members; bytes are those that it makes"
    return Group(table, plain(said, "dim"))


def _results(profile: Profile) -> RenderableType:
    rows = [(_bare(row.kind), row.calls, row.in_place, row.fresh) for row in profile.by_operator()]
    columns = {"operator": None, ">calls": _digits, ">in place": _digits, ">fresh": _digits}
    table = _first_rows(sorted(rows, key=lambda row: -row[2] - row[3]), columns)
    said = "in place: results written over an operand; fresh: in memory of their own, new or planned; views are neither"
    return Group(table, plain(said, "dim"))


def _nodes(profile: Profile) -> RenderableType:
    inputs = "inputs, at the first call"
    rows = [
        (plain(node.label), node.own, node.own, node.calls, plain(", ".join(node.inputs) or "block by block"))
        for node in profile.by_node()
    ]
    return _first_rows(rows, {"node": None, **_times(profile.own), ">calls": _digits, inputs: None}, "others")


def _groups(profile: Profile, groups: list[GroupProfile]) -> RenderableType:
    rows: list[tuple[Any, ...]] = []
    for group in groups:
        own = group.node.own + sum(member.own for member in group.members)
        members = ", ".join(f"{m.kind.removeprefix('onnx::')} {_share(m.own, own)}" for m in group.members)
        members += f"; itself {_share(group.node.own, own)}"
        if group.node.fused:
            members = f"as one step: {', '.join(kind.removeprefix('onnx::') for kind in group.node.fused)}"
        rows.append((plain(group.node.label), own, own, plain(members)))
    return _first_rows(rows, {"group": None, **_times(profile.own), "its members, by share": None}, "others")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"
