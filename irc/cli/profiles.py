"""``irc run --profile``: what a run spent its time and memory on, as tables on stderr."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table

from irc.cli.tables import new_console, new_table, plain
from irc.runtime.profile import GroupProfile, Profile, headlines, ms

MOST_ROWS = 16
"""How many rows a table has before it sums up the rest."""

NARROWEST = 60
"""For how many characters a line profiles are laid out at least."""


def print_profile(profile: Profile) -> None:
    """Print a profile, in colour if stderr is a terminal."""
    grid = Table.grid(padding=(0, 2, 1, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, content in _sections(profile):
        grid.add_row(label, content)
    new_console(NARROWEST).print(grid)


def _sections(profile: Profile) -> Iterable[tuple[str, RenderableType]]:
    yield "run", plain(headlines(profile))
    yield "operators", _operators(profile)
    yield "results", _results(profile)
    yield "nodes", _nodes(profile)
    if groups := profile.by_group():
        yield "groups", _groups(profile, groups)


def _operators(profile: Profile) -> RenderableType:
    table = new_table("operator", ">ms", ">share", ">nodes", ">calls", ">bytes")
    rows = profile.by_operator()
    for row in rows[:MOST_ROWS]:
        kind = plain(row.kind.removeprefix("onnx::"))
        share = _share(row.own, profile.own)
        table.add_row(kind, ms(row.own), share, f"{row.nodes:,}", f"{row.calls:,}", f"{row.bytes:,}")
    if rest := rows[MOST_ROWS:]:
        own = sum(row.own for row in rest)
        table.add_row(f"{len(rest)} other kinds", ms(own), _share(own, profile.own))
    said = "each by itself: an If without its branch, a group without its members; bytes are those that it makes"
    return Group(table, plain(said, "dim"))


def _results(profile: Profile) -> RenderableType:
    table = new_table("operator", ">calls", ">in place", ">fresh")
    rows = sorted(profile.by_operator(), key=lambda row: -row.in_place - row.fresh)
    for row in rows[:MOST_ROWS]:
        kind = plain(row.kind.removeprefix("onnx::"))
        table.add_row(kind, f"{row.calls:,}", f"{row.in_place:,}", f"{row.fresh:,}")
    if rest := rows[MOST_ROWS:]:
        sums = (sum(column) for column in zip(*((row.calls, row.in_place, row.fresh) for row in rest)))
        table.add_row(f"{len(rest)} other kinds", *(f"{n:,}" for n in sums))
    said = "in place: results written over an operand; fresh: in memory of their own, new or planned; views are neither"
    return Group(table, plain(said, "dim"))


def _nodes(profile: Profile) -> RenderableType:
    table = new_table("node", ">ms", ">share", ">calls", "inputs, at the first call")
    rows = profile.by_node()
    for node in rows[:MOST_ROWS]:
        inputs = plain(", ".join(node.inputs) or "block by block")
        table.add_row(plain(node.label), ms(node.own), _share(node.own, profile.own), f"{node.calls:,}", inputs)
    if rest := rows[MOST_ROWS:]:
        own = sum(node.own for node in rest)
        table.add_row(f"{len(rest)} others", ms(own), _share(own, profile.own))
    return table


def _groups(profile: Profile, groups: list[GroupProfile]) -> RenderableType:
    table = new_table("group", ">ms", ">share", "its members, by share")
    for group in groups[:MOST_ROWS]:
        own = group.node.own + sum(member.own for member in group.members)
        members = ", ".join(f"{m.kind.removeprefix('onnx::')} {_share(m.own, own)}" for m in group.members)
        members += f"; itself {_share(group.node.own, own)}"
        if group.node.fused:
            members = f"as one step: {', '.join(kind.removeprefix('onnx::') for kind in group.node.fused)}"
        table.add_row(plain(group.node.label), ms(own), _share(own, profile.own), plain(members))
    if rest := groups[MOST_ROWS:]:
        own = sum(group.node.own + sum(member.own for member in group.members) for group in rest)
        table.add_row(f"{len(rest)} others", ms(own), _share(own, profile.own))
    return table


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"
