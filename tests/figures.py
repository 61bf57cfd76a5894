"""The figures of the documentation: ``python -m tests.figures`` draws them anew, ``tests/test_figures.py`` compares.

An alias graph is drawn for each block of IR with a title (``ir title="views.ir"``) on the pages that `ALIAS_PAGES`
names, as ``figures/views.svg`` beside the page: values on the left, the locations that they may denote, the nodes that
write on the right. So text and figure cannot disagree. `DIAGRAMS` states the other figures as boxes and arrows.
Everything is laid out here, in layers: no program that draws graphs is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

import networkx

from irc.alias import AliasDb, Kind, analyze
from irc.ir import parse_module
from tests.doc_blocks import blocks
from tests.layers import direct_imports

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
ALIAS_PAGES = (DOCS / "tutorial" / "alias-analysis.md", DOCS / "explanation" / "alias-analysis.md")

CHARACTER, LINE, PAD, GAP, LEVEL = 7.2, 17, 10, 18, 56
"""Pixels: width of a character, height of a line, room in a box, between boxes of a layer, between layers."""

FILL = {"value": "#ffffff", "location": "#dbe9fb", "node": "#fde3d3", "box": "#eef1f8", "data": "#ffffff"}
STROKE = {"denotes": "#333333", "holds": "#1f5fbf", "writes": "#c0392b", "flow": "#333333", "types": "#888888"}
DASHES = {"holds": "6 4", "types": "2 4"}


@dataclass
class Figure:
    """Boxes and arrows.

    Attributes:
        title: what a reader of the picture's text hears.
        layers: the boxes' keys, layer by layer; keys of bends of arrows are made up.
        labels: text of each box; a line end begins a line.
        sorts: of each box, for its colour.
        edges: from, to, and the sort of arrow.
        is_wide: layers lie side by side, not below each other.
        legend: the sorts of arrows to explain.
    """

    title: str
    layers: list[list[str]]
    labels: dict[str, str]
    sorts: dict[str, str]
    edges: list[tuple[str, str, str]]
    is_wide: bool = True
    legend: tuple[tuple[str, str], ...] = ()
    keeps_order: bool = False
    at: dict[str, tuple[float, float]] = field(default_factory=dict)

    def size(self, key: str) -> tuple[float, float]:
        if key not in self.labels:
            return 1, 1
        lines = self.labels[key].split("\n")
        return max(map(len, lines)) * CHARACTER + 2 * PAD, len(lines) * LINE + 1.2 * PAD


def alias_figure(db: AliasDb, name: str) -> Figure:
    """Every value with memory, what it may denote, what locations hold and which nodes write.

    An input is shown at unknown memory, of which what it borrows is a part.
    """
    picture = db.to_networkx()
    labels = {key: data["label"] for key, data in picture.nodes(data=True)}
    sorts = {key: data["sort"] for key, data in picture.nodes(data=True)}
    edges = [(a, b, data["kind"]) for a, b, data in picture.edges(data=True)]
    keys = {labels[key]: key for key, sort in sorts.items() if sort == "location"}
    for value in (*db.graph.inputs, *(output for node in db.graph.walk() for output in node.outputs)):
        name_of = f"%{value.name}"
        found = {location for location in db.locations(value) if location.kind is not Kind.BORROWED}
        if name_of not in labels and found:  # memory that nothing shares
            labels[name_of], sorts[name_of] = f"{name_of} : {value.type}", "value"
            for text in sorted(map(str, found)):
                key = keys.setdefault(text, text)
                labels[key], sorts[key] = text, "location"
                edges.append((name_of, key, "denotes"))
    order = [f"%{value.name}" for value in db.values_in_order()]
    values = sorted((key for key, sort in sorts.items() if sort == "value"), key=order.index)
    locations = sorted((key for key, sort in sorts.items() if sort == "location"), key=labels.__getitem__)
    layers = [values, locations, [key for key, sort in sorts.items() if sort == "node"]]
    kinds = {kind for _, _, kind in edges}
    says = (("denotes", "may denote"), ("holds", "holds"), ("writes", "writes"))
    legend = tuple((kind, text) for kind, text in says if kind in kinds)
    return Figure(f"The alias graph of {name}", layers, labels, sorts, edges, legend=legend, keeps_order=True)


def diagram(title: str, arrows: str, labels: Mapping[str, str] | None = None, is_wide: bool = False) -> Figure:
    """A figure of arrows such as ``a -> b -> c; a .> d``; keys in brackets, ``[a]``, are data rather than steps."""
    edges: list[tuple[str, str, str]] = []
    sorts: dict[str, str] = {}
    for chain in arrows.split(";"):
        before, sort = "", "flow"
        for word in chain.split():
            if word in ("->", ".>"):
                sort = "flow" if word == "->" else "types"
                continue
            key = word.strip("[]")
            sorts.setdefault(key, "data" if word.startswith("[") else "box")
            if before:
                edges.append((before, key, sort))
            before = key
    graph = networkx.DiGraph([edge[:2] for edge in edges])
    rank: dict[str, int] = {}
    for key in networkx.topological_sort(graph):
        rank[key] = max((rank[other] + 1 for other in graph.predecessors(key)), default=0)
    for key in graph:
        if not graph.pred[key]:  # next to the first that needs it
            rank[key] = min(rank[other] for other in graph.successors(key)) - 1
    layers: list[list[str]] = [[] for _ in range(max(rank.values()) + 1)]
    for key in sorts:
        layers[rank[key]].append(key)
    texts = {key: (labels or {}).get(key, key.replace("_", " ")) for key in sorts}
    return Figure(title, layers, texts, sorts, edges, is_wide)


def _bent(figure: Figure) -> list[list[str]]:
    """The way of each edge through the layers, for which bends are put into those that it crosses."""
    rank = {key: i for i, layer in enumerate(figure.layers) for key in layer}
    ways: list[list[str]] = []
    for number, (a, b, _) in enumerate(figure.edges):
        step = 1 if rank[b] > rank[a] else -1
        bends = [f"bend {number} {i}" for i in range(rank[a] + step, rank[b], step)] if rank[a] != rank[b] else []
        for i, bend in zip(range(rank[a] + step, rank[b], step), bends):
            figure.layers[i].append(bend)
        ways.append([a, *bends, b])
    return ways


def _order(layers: list[list[str]], ways: Sequence[Sequence[str]]) -> None:
    """Sort each layer by where its neighbours lie (the barycentre heuristic of Sugiyama et al., 1981)."""
    near: dict[str, list[str]] = {}
    for way in ways:
        for a, b in pairwise(way):
            near.setdefault(a, []).append(b)
            near.setdefault(b, []).append(a)
    for _ in range(8):
        place = {key: i - len(layer) / 2 for layer in layers for i, key in enumerate(layer)}
        for layer in layers:
            around = {key: [place[other] for other in near.get(key, [])] for key in layer}
            layer.sort(key=lambda key, around=around: sum(around[key]) / len(around[key]) if around[key] else 0)
            place |= {key: i - len(layer) / 2 for i, key in enumerate(layer)}


def lay_out(figure: Figure) -> tuple[float, float, list[list[str]]]:
    """Place the boxes; returns width and height of all, and the ways of edges."""
    ways = _bent(figure)
    if not figure.keeps_order:
        _order(figure.layers, ways)
    layers = [layer for layer in figure.layers if layer]
    across = 1 if figure.is_wide else 0
    lengths = [sum(figure.size(key)[across] + GAP for key in layer) - GAP for layer in layers]
    depth = PAD
    for layer, length in zip(layers, lengths, strict=True):
        thick = max(figure.size(key)[1 - across] for key in layer)
        position = PAD + (max(lengths) - length) / 2
        for key in layer:
            extent = figure.size(key)[across]
            middle = position + extent / 2, depth + thick / 2
            figure.at[key] = middle if not figure.is_wide else middle[::-1]
            position += extent + GAP
        depth += thick + LEVEL
    rank = {key: i for i, layer in enumerate(layers) for key in layer}
    beside = 30 if any(rank[a] == rank[b] == len(layers) - 1 for a, b, _ in figure.edges) else 0
    total = max(lengths) + 2 * PAD, depth - LEVEL + PAD + beside
    return (*(total if not figure.is_wide else total[::-1]), ways)


def _path(figure: Figure, way: Sequence[str]) -> str:
    """A smooth line from the border of the first box to that of the last."""
    (x0, y0), (x1, y1) = figure.at[way[0]], figure.at[way[-1]]
    (w0, h0), (w1, h1) = figure.size(way[0]), figure.size(way[-1])
    if figure.is_wide and abs(x0 - x1) < 1:  # in one layer: around, on the side
        side = max(w0, w1) / 2 + 26
        return (
            f"M{x0 + w0 / 2:.0f} {y0:.0f} C{x0 + side:.0f} {y0:.0f} {x1 + side:.0f} {y1:.0f} {x1 + w1 / 2:.0f} {y1:.0f}"
        )
    sign = 1 if (x1 > x0 if figure.is_wide else y1 > y0) else -1
    if figure.is_wide:
        points = [(x0 + sign * w0 / 2, y0), *(figure.at[key] for key in way[1:-1]), (x1 - sign * w1 / 2, y1)]
    else:
        points = [(x0, y0 + sign * h0 / 2), *(figure.at[key] for key in way[1:-1]), (x1, y1 - sign * h1 / 2)]
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (ax, ay), (bx, by) in pairwise(points):
        mx, my = (ax + bx) / 2, (ay + by) / 2
        first, second = ((mx, ay), (mx, by)) if figure.is_wide else ((ax, my), (bx, my))
        path += f" C{first[0]:.0f} {first[1]:.0f} {second[0]:.0f} {second[1]:.0f} {bx:.0f} {by:.0f}"
    return path


def svg(figure: Figure) -> str:
    """The picture, on white, as it may be shown on a dark page."""
    width, height, ways = lay_out(figure)
    legend_width = sum(60 + len(text) * CHARACTER for _, text in figure.legend) + PAD
    width, drawn = max(width, legend_width), height
    height += 26 if figure.legend else 0
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="ui-monospace, Menlo, Consolas, monospace" '
        'font-size="12">',
        f"<title>{escape(figure.title)}</title>",
        "<defs>",
        *(
            f'<marker id="{sort}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            f'<path d="M0 0 L8 4 L0 8 z" fill="{colour}"/></marker>'
            for sort, colour in STROKE.items()
            if sort in {edge[2] for edge in figure.edges}
        ),
        "</defs>",
        f'<rect width="{width:.0f}" height="{height:.0f}" rx="6" fill="#ffffff"/>',
    ]
    for (_, _, sort), way in zip(figure.edges, ways, strict=True):
        lines.append(_stroke(sort, _path(figure, way)))
    for key, (x, y) in figure.at.items():
        if key in figure.labels:
            lines += _box(figure, key, x, y)
    x = float(PAD)
    for sort, text in figure.legend:
        lines.append(_stroke(sort, f"M{x:.0f} {drawn + 9:.0f} L{x + 30:.0f} {drawn + 9:.0f}"))
        lines.append(f'<text x="{x + 38:.0f}" y="{drawn + 13:.0f}" fill="#333333">{text}</text>')
        x += 60 + len(text) * CHARACTER
    return "\n".join([*lines, "</svg>", ""])


def _stroke(sort: str, path: str) -> str:
    dashes = f' stroke-dasharray="{DASHES[sort]}"' if sort in DASHES else ""
    return (
        f'<path d="{path}" fill="none" stroke="{STROKE[sort]}" stroke-width="1.4"{dashes} marker-end="url(#{sort})"/>'
    )


def _box(figure: Figure, key: str, x: float, y: float) -> Iterator[str]:
    w, h = figure.size(key)
    sort = figure.sorts[key]
    radius = h / 2 if sort == "value" else 4
    yield (
        f'<rect x="{x - w / 2:.0f}" y="{y - h / 2:.0f}" width="{w:.0f}" height="{h:.0f}" rx="{radius:.0f}" '
        f'fill="{FILL[sort]}" stroke="#555555"/>'
    )
    lines = figure.labels[key].split("\n")
    for i, line in enumerate(lines):
        base = y + (i - (len(lines) - 1) / 2) * LINE + 4
        yield f'<text x="{x:.0f}" y="{base:.0f}" text-anchor="middle" fill="#111111">{escape(line)}</text>'


def _architecture() -> Figure:
    edges = [(a, b, "types" if is_for_types else "flow") for a, b, is_for_types in direct_imports()]
    arrows = "; ".join(f"{a} {'.>' if sort == 'types' else '->'} {b}" for a, b, sort in edges)
    return diagram("Which layer of irc imports which", arrows)


def diagrams() -> dict[str, Figure]:
    """The figures that are no alias graphs, by their paths below ``docs/``."""
    return {
        "explanation/figures/layers.svg": _architecture(),
        "explanation/figures/life.svg": diagram(
            "The way of a model through irc",
            "[onnx] -> import -> [graph] -> passes -> [optimised]; [torch] -> import; "
            "[optimised] -> lower -> [plan] -> run; [optimised] -> [file]; [optimised] -> [export]; "
            "alias .> passes; alias .> lower; native .> run",
            {
                "onnx": "ONNX model",
                "torch": "TorchScript",
                "import": "import\nnames, versions, shapes checked",
                "graph": "SSA graph",
                "passes": "passes\nfold, simplify, fuse",
                "optimised": "optimised graph\nverified",
                "lower": "lower\nslots, last uses, memory plan",
                "plan": "plan",
                "run": "run on NumPy",
                "file": ".irc file",
                "export": "ONNX file",
                "alias": "alias analysis\nupdated in place",
                "native": "machine code\n(llvmlite)",
            },
        ),
        "explanation/figures/fusion.svg": diagram(
            "How a group grows",
            "scan -> producer -> admits -> moves -> joins -> producer_; admits .> remark; moves .> remark; "
            "alias .> moves; joins -> [group]",
            {
                "scan": "scan a block backwards:\na fusable operator begins a cluster",
                "producer": "take a producer of its inputs",
                "admits": "does the policy admit it?",
                "moves": "can it move next to the cluster?",
                "joins": "it joins the cluster",
                "producer_": "next producer",
                "remark": "no: a remark says why",
                "alias": "alias analysis:\nmove_before",
                "group": "prim::FusionGroup",
            },
        ),
        "explanation/figures/run.svg": diagram(
            "A run from call to results",
            "[feeds] -> bind -> [kind] -> plan -> [frame] -> steps -> detach -> [results]; [arena] .> frame;"
            "[template] .> frame; limits .> steps",
            {
                "feeds": "feeds",
                "bind": "bind inputs\nchecked, read-only views",
                "kind": "shapes and element types",
                "plan": "look up the memory plan",
                "frame": "frame: one slot a value",
                "steps": "call the steps in order\nempty slots after last uses",
                "detach": "detach outputs\ncopy what shares memory",
                "results": "results",
                "arena": "arena",
                "template": "template: constants",
                "limits": "limits, threads",
            },
        ),
        "explanation/figures/memory.svg": diagram(
            "Where a result lies",
            "result -> output; result -> operand; result -> place; result -> fresh",
            {
                "result": "a result of an operator",
                "output": "it leaves the run:\nmemory of its own",
                "operand": "an operand dies here and may be\nwritten: over the operand",
                "place": "shapes follow from the inputs:\na place in the arena",
                "fresh": "else:\nfresh memory, freed after\nthe last use",
            },
        ),
        "explanation/figures/updates.svg": diagram(
            "What an update costs",
            "[change] -> update; update -> grow; update -> drop; update -> part; part -> whole; grow -> [exact]; "
            "drop -> exact; whole -> exact",
            {
                "change": "a pass changes the graph\nthrough the Rewriter",
                "update": "update of the AliasDb",
                "grow": "new constraints:\nmemos above grow",
                "drop": "a value replaced or erased:\nmemos above are dropped",
                "part": "conclusions taken back:\na part is recorded again",
                "whole": "if anything of it has escaped:\nthe whole graph",
                "exact": "every query answers\nas after a rebuild",
            },
        ),
        "explanation/figures/append.svg": diagram(
            "How irc::append_ decides",
            "[cache] -> mark -> room -> place; mark .> copy; room .> copy; copy -> [new]",
            {
                "cache": "cache and new rows",
                "mark": "does the cache end at the\nhigh-water mark of its buffer?",
                "room": "is there capacity?",
                "place": "write the rows behind it:\nthe result is a longer view",
                "copy": "no: copy both",
                "new": "a buffer for twice the positions,\nif it will be extended again",
            },
        ),
        "explanation/figures/native.svg": diagram(
            "How a group becomes machine code",
            "[group] -> emit -> [ir] -> llvm -> [object] -> call; "
            "[semantics] .> emit; [cache] .> llvm; [object] -> cache_",
            {
                "group": "group, types and axes of operands",
                "emit": "emit a loop nest",
                "semantics": "scalar semantics\nof operators' records",
                "ir": "LLVM IR with vectors",
                "llvm": "compile (llvmlite)",
                "cache": "object cache:\nhit",
                "cache_": "object cache:\nkept",
                "object": "object code",
                "call": "one builtin function\ncompares types, shapes, strides",
            },
        ),
        "explanation/figures/phases.svg": diagram(
            "The phases of the alias analysis",
            "[graph] -> record -> [constraints] -> solve -> [db] -> queries; "
            "[db] -> updates; rules .> record; memo .> queries",
            {
                "graph": "graph",
                "record": "AliasDbBuilder\nrecords constraints, answers nothing",
                "rules": "rules: schema rows,\ncontrol flow, containers",
                "constraints": "point, Load, Store, Unknown",
                "solve": "freeze()\nleast solution",
                "db": "AliasDb",
                "queries": "queries",
                "updates": "updates in place:\nmore constraints, same solver",
                "memo": "memoised sets over\nstrongly connected components",
            },
        ),
    }


def figures() -> dict[Path, str]:
    """Every figure, by its path."""
    found: dict[Path, str] = {}
    for page in ALIAS_PAGES:
        for block in blocks(page) if page.exists() else []:
            if block.language == "ir" and block.title:
                name = Path(block.title).stem
                module = parse_module(block.text)
                picture = svg(alias_figure(analyze(module.main, module), name))
                found[page.parent / "figures" / f"{name}.svg"] = picture
    for path, figure in diagrams().items():
        found[DOCS / path] = svg(figure)
    return found


if __name__ == "__main__":
    for path, text in figures().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
