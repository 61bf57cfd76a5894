"""The page of a model as one HTML file: passes' changes, shared memory, and the arena.

Nothing in it comes from elsewhere, and nothing of the model is markup or code: data stand as JSON in an element that no
browser runs, scripts set text only, and the page's content security policy names the hash of that script.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from irc import __version__
from irc.alias import analyze
from irc.drawing.svg import FILLS, variables
from irc.ir import Graph
from irc.passes.instruments import Instrument
from irc.passes.registry import Pipeline, print_pass
from irc.runtime.execution import label
from irc.runtime.report import Report
from irc.support.formatting import count, milliseconds, one_line, printable
from irc.tools import report_text
from irc.tools.model_page.snapshot import Data, Snapshot

if TYPE_CHECKING:
    from irc.passes.base import Pass, PassContext
    from irc.passes.manager import PassReport
    from irc.runtime.memory_plan import MemoryPlan, Place
    from irc.runtime.model import CompiledModel
    from irc.runtime.profile import Profile
    from irc.support.remarks import Remark

MOST_BOXES = 20_000
"""Boxes that the states between the first and the last may have together: later states are left out."""


class Recorder(Instrument):
    """Keeps the main graph as it was imported, and after each pass that changed it.

    Attributes:
        states: in order.
        changes: of each pass that ran on the main graph and changed something, its state's index; None if left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.states: list[Data] = []
        self.changes: list[tuple[str, int | None]] = []

    def start(self, pipeline: Pipeline, graphs: list[Graph], ctx: PassContext) -> None:
        self._boxes = 0
        graph = graphs[0]
        self.states, self.changes = [Snapshot(graph, "as imported", analyze(graph, graph.module)).data], []

    def after(self, p: Pass, graph: Graph, ctx: PassContext, changed: bool) -> None:
        if not changed or not graph.is_main:
            return
        kept = self._boxes < MOST_BOXES
        if kept:
            state = Snapshot(graph, f"after {len(self.changes) + 1}. {print_pass(p)}")
            self._boxes += state.boxes
            self.states.append(state.data)
        self.changes.append((p.name, len(self.states) - 1 if kept else None))


def page_of(
    model: CompiledModel | Graph,
    recorder: Recorder | None = None,
    profile: Profile | None = None,
    report: Report | PassReport | None = None,
) -> str:
    """The page of a compiled model, as HTML.

    Args:
        model: the model, or the graph of one that cannot be run.
        recorder: what watched the passes; None if they ran before, as those of a ``.irc`` file did.
        profile: of a run of it, for the time of each node.
        report: what the passes did; by default, what the model says.
    """
    return render(data_of(model, recorder, profile, report))


def data_of(
    model: CompiledModel | Graph,
    recorder: Recorder | None = None,
    profile: Profile | None = None,
    report: Report | PassReport | None = None,
) -> Data:
    """What the page shows, as plain data; arguments as of `page_of`."""
    graph = model if isinstance(model, Graph) else model.graph
    plan = None if isinstance(model, Graph) else model.runs.expected()
    if report is None and not isinstance(model, Graph):
        report = model.report
    told = report if isinstance(report, Report) else Report(name=graph.name)
    remarks = (report.remarks if report is not None else []) if isinstance(model, Graph) else model.remarks
    last = Snapshot(graph, "optimised", analyze(graph, graph.module))
    return {
        "title": one_line(told.name.replace("\\", "/").rpartition("/")[2]),
        "graphs": [*(recorder.states if recorder is not None else []), last.data],
        "summary": [[label, printable(text)] for label, text in report_text.rows(told) if label != "passes"],
        "passes": [] if report is None else _passes(report.passes, recorder),
        "effects": [] if report is None else [[one_line(name), n] for name, n in report.stats.items()],
        "remarks": [_remark(remark) for remark in remarks],
        "memory": None if plan is None else _memory(plan, last, told.memory.peak),
        "times": None if profile is None else _times(last, profile),
    }


def render(data: Data) -> str:
    """The page with ``data``."""
    folder = files(__name__)
    template, style, *scripts = (
        (folder / name).read_text("utf-8") for name in ("page.html", "page.css", "graph.js", "pane.js", "page.js")
    )
    script = f'"use strict";\n(() => {{\n{"".join(scripts)}}})();\n'
    sorts = "".join(f".item.{sort} rect,.fill.{sort}{{fill:var(--{colour})}}" for sort, colour in FILLS.items())
    return Template(template).substitute(
        title=escape(data["title"]),
        version=__version__,
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=variables(":root") + style + sorts,
        script=script,
        # "<" as an escape: the text can neither end its element nor begin a comment in it.
        data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
    )


def _passes(runs: Any, recorder: Recorder | None) -> list[list[Any]]:
    """Runs of passes: name, milliseconds, whether something changed, and the index of the state after it."""
    changes = list(recorder.changes) if recorder is not None else []
    rows: list[list[Any]] = []
    for run in runs:
        step = None
        if run.changed and changes and changes[0][0] == run.name:
            _, step = changes.pop(0)
        rows.append([one_line(run.name), run.seconds * 1e3, run.changed, step])
    return rows


def _remark(remark: Remark) -> Data:
    """A remark, and the names of the values that its place and what is in the way have."""
    places = [part for part in remark.where.partition(" = ")[0].split(", ") if part.startswith("%")]
    names = [one_line(name.removeprefix("%")) for name in [*places, remark.blocker] if name]
    lines = [one_line(line) for line in remark.lines()]
    return {
        "pass": remark.pass_name,
        "what": remark.what,
        "where": one_line(remark.where),
        "lines": lines,
        "names": names,
    }


def _memory(plan: MemoryPlan, state: Snapshot, peak: int | None) -> Data:
    """The places of the arena with their live ranges, and the values in them; parts count as their whole."""
    values: dict[Place, list[int]] = {}
    for value, place in plan.place_of.items():
        while place.whole is not None:
            place = place.whole
        inside = values.setdefault(place, [])
        if value in state.value_ids:
            inside.append(state.value_ids[value])
    places = [
        [place.offset, place.form.nbytes, place.start, place.end, inside]
        for place, inside in values.items()
        if place.source is None
    ]
    return {"arena": plan.nbytes, "bound": plan.bound, "peak": peak, "in_use": plan.in_use, "places": places}


def _times(state: Snapshot, profile: Profile) -> dict[int, str]:
    """What the run took in each node, by the node's number. Nodes that are called the same share one text."""
    spent: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for row in profile.nodes:
        spent[row.label] += row.total
        calls[row.label] += row.calls
    labels = {i: label(node) for node, i in state.node_ids.items()}
    text = "{} ms of {} ms, {}"
    whole = milliseconds(profile.elapsed / 1e9)
    return {
        i: text.format(milliseconds(spent[name] / 1e9), whole, count(calls[name], "call"))
        for i, name in labels.items()
        if name in spent
    }
