"""Profiles as files that Chrome (``chrome://tracing``), Perfetto and Speedscope show.

Format: "Trace Event Format", Google, 2016: complete events (``X``), counters
(``C``) and names of threads (``M``). Times are in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any

from irc.files import replacing

if TYPE_CHECKING:
    from irc.runtime.profiles.profile import Event, Profile

_PROCESS = 1


def save_trace(profile: Profile, path: str | PathLike[str]) -> None:
    """Write a trace file, whole or not at all. Error IRC501 if that cannot be."""
    content = {"traceEvents": list(trace_events(profile)), "displayTimeUnit": "ms"}
    with replacing(path) as file:
        file.write(json.dumps(content).encode("ascii"))


def trace_events(profile: Profile) -> Iterator[dict[str, Any]]:
    """The events of a profile: calls, and the memory that is alive."""
    yield {"ph": "M", "name": "thread_name", "pid": _PROCESS, "tid": 0, "args": {"name": "run"}}
    # A viewer nests what lies within: the outer one of two that begin at once has to come first.
    for event in sorted(profile.events, key=lambda e: (e.start, -e.end)):
        yield _call(event)
    for when, alive in profile.memory:
        counter = {"ph": "C", "name": "memory", "pid": _PROCESS, "tid": 0, "ts": when / 1e3}
        yield {**counter, "args": {"bytes alive": alive}}


def _call(event: Event) -> dict[str, Any]:
    node = event.node
    arguments = {"node": node.label, "inputs at the first call": ", ".join(node.inputs)}
    if node.within is not None:
        arguments["within"] = node.within.label
    if node.fused:
        arguments["fused"] = ", ".join(node.fused)
    return {
        "ph": "X",
        "name": node.kind.removeprefix("onnx::"),
        "cat": "member" if node.group is not None else "node",
        "pid": _PROCESS,
        "tid": 0,
        "ts": event.start / 1e3,
        "dur": (event.end - event.start) / 1e3,
        "args": arguments,
    }
