"""The alias graph as a picture: values left, locations that they may denote right, nodes that write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.alias.explain import Edge, drawing
from irc.alias.facts import Kind
from irc.drawing import Arrow, Box, Picture, to_svg

if TYPE_CHECKING:
    from irc.alias.db import AliasDb

FEW = 40
"""Graphs with more values are drawn without memory that nothing shares or writes."""

NOTEBOOK = 60
"""Values that a notebook shows."""

LEGEND = {"denotes": "may denote", "holds": "holds", "writes": "writes"}


def picture_of(db: AliasDb, name: str = "", most: int | None = None) -> Picture:
    """What may share memory in a graph; with ``most``, at most that many values, locations and nodes each.

    An input is shown at unknown memory, of which its own memory is a part.
    """
    shown = drawing(db)
    texts, edges = dict(shown.nodes), list(shown.edges)
    locations = {text: key for key, (text, sort) in texts.items() if sort == "location"}
    values = db.values_in_order()
    for value in values if len(values) <= FEW else ():
        key = f"%{value.name}"
        found = [] if key in texts else sorted(str(x) for x in db.locations(value) if x.kind is not Kind.BORROWED)
        if found:  # memory that nothing shares
            texts[key] = f"{key} : {value.type}", "value"
            for text in found:
                texts[locations.setdefault(text, text)] = text, "location"
                edges.append(Edge(key, locations[text], "denotes"))
    order = {f"%{value.name}": i for i, value in enumerate(values)}
    keys = sorted((key for key, (_, sort) in texts.items() if sort == "value"), key=order.__getitem__)
    reached = texts.keys() if most is None else _reached(keys[:most], edges)
    places = [key for key in sorted(texts, key=lambda key: texts[key][0]) if texts[key][1] == "location"]
    writers = [key for key, (_, sort) in texts.items() if sort == "node"]
    keys = [key for part in (keys, places, writers) for key in [key for key in part if key in reached][:most]]
    number = {key: i for i, key in enumerate(keys)}
    boxes = [Box([texts[key][0]], texts[key][0], texts[key][1].replace("node", "write")) for key in keys]
    if len(keys) < len(texts):
        more = f"and {len(texts) - len(keys):,} more"
        boxes.append(Box([more], more, "capture"))
    arrows = [
        Arrow(number[edge.source], number[edge.target], edge.kind, leads_back=edge.kind == "writes")
        for edge in edges
        if edge.source in number and edge.target in number
    ]
    kinds = {arrow.sort for arrow in arrows}
    legend = [(kind, text) for kind, text in LEGEND.items() if kind in kinds]
    title = f"The alias graph of {name or db.graph.name}"
    return Picture(title, boxes, arrows, is_wide=True, keeps_order=True, legend=legend)


def notebook_html(db: AliasDb) -> str:
    """HTML for notebooks: the picture, or that of the first values."""
    return f'<div style="max-height:40em;overflow:auto">{to_svg(picture_of(db, most=NOTEBOOK))}</div>'


def _reached(keys: list[str], edges: list[Edge]) -> set[str]:
    """``keys``, the locations that they lead to, and the nodes that write these."""
    following: dict[str, list[str]] = {}
    for edge in edges:
        if edge.kind != "writes":
            following.setdefault(edge.source, []).append(edge.target)
    found, pending = set(keys), list(keys)
    while pending:
        for key in following.get(pending.pop(), ()):
            if key not in found:
                found.add(key)
                pending.append(key)
    return found | {edge.source for edge in edges if edge.kind == "writes" and edge.target in found}
