"""A profile as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.wording import count, milliseconds

if TYPE_CHECKING:
    from irc.runtime.profiles.profile import Profile

MOST_KINDS = 8
"""How many kinds of operators are listed, those that took most."""


def to_text(profile: Profile) -> str:
    """The run in a few lines, then a line for each kind of operator that took most."""
    rows = profile.by_operator()
    lines = [headlines(profile)]
    for row in rows[:MOST_KINDS]:
        lines.append(
            f"{ms(row.own):>12} ms  {row.kind}, {count(row.calls, 'call')}, {row.in_place:,} in place,"
            f" {row.fresh:,} fresh, {count(row.bytes, 'byte')} made"
        )
    if rest := rows[MOST_KINDS:]:
        lines.append(f"{ms(sum(row.own for row in rest)):>12} ms  {count(len(rest), 'other kind')}")
    return "\n".join(lines)


def headlines(profile: Profile) -> str:
    """Where time and memory of the whole run went."""
    counters = profile.counters
    lines = [
        f"{ms(profile.elapsed)} ms: {ms(profile.own)} in nodes, {ms(profile.between)} between them and at the ends,"
        f" {ms(profile.following)} for following them",
        f"{count(profile.peak, 'byte')} alive at the peak, without weights and inputs; results alive at one time need"
        f" {profile.least:,}",
        f"{count(profile.allocations, 'allocation')}, {count(counters.planned, 'result')}"
        f" in {count(profile.arena, 'byte')} of planned memory, at the most {counters.arena_bound:,} of it at one time",
        f"{count(counters.units, 'unit')}, {count(counters.kernels, 'kernel')}, {counters.in_place:,} in place,"
        f" {count(counters.copies, 'copy', 'copies')} of {count(counters.copied_bytes, 'byte')} at the ends",
    ]
    if profile.dropped:
        lines.append(f"{count(profile.dropped, 'event')} in the tables, but not in the trace: there are too many")
    return "\n".join(lines)


def ms(nanoseconds: int) -> str:
    """A time of a profile in milliseconds; below one, to the microsecond."""
    return f"{nanoseconds / 1e6:.3f}" if 0 < nanoseconds < 1e6 else milliseconds(nanoseconds / 1e9)
