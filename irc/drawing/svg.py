"""Pictures of boxes and arrows as SVG for light and dark themes; they print dark on white."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

from irc.drawing.layout import Layout, lay_out
from irc.support.formatting import one_line

CHARACTER, LINE, PAD = 7.25, 17.0, 10.0
"""Pixels: width of a character, height of a line, room around text and around what a box contains."""

MOST_CHARACTERS = 32
"""Of a line of text in a box: longer ones are cut in the middle."""

LIGHT = {
    "paper": "#ffffff",
    "ink": "#1a1a1a",
    "line": "#555555",
    "quiet": "#767676",
    "op": "#eef1f8",
    "group": "#fdf3dc",
    "block": "#f4f4f4",
    "input": "#d9ecf9",
    "output": "#d5efe4",
    "value": "#ffffff",
    "location": "#d9ecf9",
    "write": "#fbe3d4",
    "write-line": "#b34700",
    "hold-line": "#005f9e",
}
DARK = {
    "paper": "#16181d",
    "ink": "#f0f0f0",
    "line": "#b5b5b5",
    "quiet": "#969696",
    "op": "#2b3040",
    "group": "#40361c",
    "block": "#202329",
    "input": "#173a52",
    "output": "#13412f",
    "value": "#16181d",
    "location": "#173a52",
    "write": "#4d2a12",
    "write-line": "#ff9a52",
    "hold-line": "#6cbcf0",
}
"""Colours by what they are for. Lines take the hues of Okabe and Ito (2008), which colour-blind readers can tell apart;
besides, no difference is one of colour alone: shapes and dashes differ too."""

FILLS = {
    **{sort: sort for sort in ("op", "group", "block", "input", "output", "value", "location", "write")},
    "capture": "block",
    "box": "op",
    "data": "value",
}
"""Sorts of boxes, and the names of their colours."""

ROUND = ("input", "output", "capture", "value")

ARROWS = {
    "flow": ("line", ""),
    "denotes": ("line", ""),
    "types": ("quiet", "2 4"),
    "holds": ("hold-line", "6 4"),
    "writes": ("write-line", "1 3"),
}
"""Sorts of arrows: the colour, and dashes."""


def variables(scope: str) -> str:
    """The colours as CSS variables of what ``scope`` selects."""
    light, dark = ("".join(f"--{name}:{colour};" for name, colour in theme.items()) for theme in (LIGHT, DARK))
    # On paper, dark on white whatever the theme is.
    return f"{scope}{{{light}}}@media screen and (prefers-color-scheme:dark){{{scope}{{{dark}}}}}"


def _style() -> str:
    rules = [
        variables(".irc-drawing"),
        ".irc-drawing text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:var(--ink);text-anchor:middle;"
        "direction:ltr;unicode-bidi:isolate}",
        ".irc-drawing .paper{fill:var(--paper)}.irc-drawing path{fill:none;stroke-width:1.4}",
        ".irc-drawing .item rect{stroke:var(--line)}.irc-drawing .capture rect{stroke-dasharray:4 3}",
        ".irc-drawing .write rect{stroke:var(--write-line);stroke-width:2}",
        *(f".irc-drawing .{sort}>rect{{fill:var(--{colour})}}" for sort, colour in FILLS.items()),
        *(
            f".irc-drawing .{sort}>path{{stroke:var(--{colour});{f'stroke-dasharray:{dashes}' if dashes else ''}}}"
            for sort, (colour, dashes) in ARROWS.items()
        ),
        ".irc-drawing .arrow .head{stroke-dasharray:none}",
    ]
    return "".join(rules)


STYLE = _style()


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    """``text`` on one line of at most ``most`` characters: a longer one loses its middle."""
    text = one_line(text if len(text) <= 4 * most else f"{text[: 2 * most]}{text[-2 * most :]}")
    return text if len(text) <= most else f"{text[: most // 2]}…{text[len(text) - (most - 1) // 2 :]}"


def text_width(text: str) -> float:
    """Pixels of ``text`` in a font of fixed width, in which some scripts take two columns."""
    extra = 0 if text.isascii() else sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return (len(text) + extra) * CHARACTER


@dataclass
class Box:
    """A box of a picture.

    Attributes:
        lines: its text, one string a line; long ones are cut in the middle.
        title: the whole text, which pointing at the box shows and screen readers say.
        sort: one of `FILLS`.
        inner: what is drawn inside of it, below the text.
    """

    lines: Sequence[str]
    title: str
    sort: str = "box"
    inner: Picture | None = None

    @cached_property
    def shown(self) -> list[str]:
        """Its lines as they are drawn."""
        return [cut(line) for line in self.lines]

    @cached_property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        width, height = max(map(text_width, self.shown), default=0.0), len(self.lines) * LINE
        if self.inner is not None:
            width, height = max(width, self.inner.size[0]), height + PAD / 2 + self.inner.size[1]
        return width + 2 * PAD, height + 1.2 * PAD


@dataclass
class Arrow:
    """An arrow between two boxes, by their indices.

    Attributes:
        source: where it begins.
        target: where it points.
        sort: one of `ARROWS`.
        title: what pointing at it shows.
        leads_back: whether it points against the direction in which the picture is read.
    """

    source: int
    target: int
    sort: str = "flow"
    title: str = ""
    leads_back: bool = False


@dataclass
class Picture:
    """Boxes and arrows.

    Attributes:
        title: what the picture shows, for screen readers.
        boxes: the boxes.
        arrows: between them.
        is_wide: layers lie side by side, not below each other.
        keeps_order: boxes of a layer stay in their order.
        legend: sorts of arrows to explain, each with its meaning.
    """

    title: str
    boxes: list[Box]
    arrows: list[Arrow] = field(default_factory=list[Arrow])
    is_wide: bool = False
    keeps_order: bool = False
    legend: Sequence[tuple[str, str]] = ()

    @cached_property
    def layout(self) -> Layout:
        """Where its boxes lie."""
        sizes = [(h, w) if self.is_wide else (w, h) for w, h in (box.size for box in self.boxes)]
        edges = [(a.target, a.source) if a.leads_back else (a.source, a.target) for a in self.arrows]
        found = lay_out(sizes, edges, self.keeps_order)
        if self.is_wide:
            found.x, found.y, found.width, found.height = found.y, found.x, found.height, found.width
        return found

    @cached_property
    def size(self) -> tuple[float, float]:
        """Width and height of the boxes and what is between them."""
        loops = any(arrow.source == arrow.target for arrow in self.arrows)
        return self.layout.width + 30 * loops, self.layout.height


def to_svg(picture: Picture) -> str:
    """The picture as a document, which may also stand in a page of HTML."""
    width, height = (extent + 2 * PAD for extent in picture.size)
    legend = list(_legend(picture.legend, height))
    width = max(width, sum(60 + text_width(text) for _, text in picture.legend) + PAD)
    height += 26 if legend else 0
    title = one_line(picture.title)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" class="irc-drawing" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="group" aria-label={quoteattr(title)}>',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{width:.0f}" height="{height:.0f}" rx="6"/>',
        *_contents(picture, PAD, PAD),
        *legend,
        "</svg>",
        "",
    ])  # fmt: skip


def _contents(picture: Picture, left: float, top: float) -> Iterator[str]:
    for arrow, route in zip(picture.arrows, picture.layout.routes):
        points = _path(picture, arrow, route, left, top)
        yield _arrow(arrow, points, picture.is_wide or arrow.source == arrow.target)
    for box, x, y in zip(picture.boxes, picture.layout.x, picture.layout.y):
        yield from _box(box, left + x, top + y)


def _path(picture: Picture, arrow: Arrow, route: Sequence[int], left: float, top: float) -> list[tuple[float, float]]:
    """The points of an arrow: on the border of its first box, at bends, on the border of its last box."""
    at, boxes = picture.layout, picture.boxes
    if len(route) == 1:  # from a box to itself
        x, y, (w, h) = left + at.x[route[0]], top + at.y[route[0]], boxes[route[0]].size
        return [(x + w / 2, y - h / 4), (x + w / 2 + 24, y), (x + w / 2, y + h / 4)]
    along = 0 if picture.is_wide else 1
    is_upward = (at.x, at.y)[along][route[0]] > (at.x, at.y)[along][route[-1]]
    first, *bends, last = route[::-1] if is_upward else route

    def point(item: int, by: float) -> tuple[float, float]:
        """The centre of an item, moved along the direction of the picture."""
        x, y = left + at.x[item], top + at.y[item]
        return (x + by, y) if picture.is_wide else (x, y + by)

    half, thick = boxes[first].size[along] / 2, at.thick[first]
    points = [point(first, half)]
    if thick > 2 * half:  # straight to the end of the layer, beside larger boxes
        points.append(point(first, thick - half))
    points += [point(bend, sign * at.thick[bend] / 2) for bend in bends for sign in (-1, 1)]
    points.append(point(last, -boxes[last].size[along] / 2))
    return points[::-1] if is_upward != arrow.leads_back else points


def curve(points: Iterable[tuple[float, float]], is_wide: bool) -> str:
    """A smooth path through ``points``."""
    points = list(points)
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (ax, ay), (bx, by) in pairwise(points):
        mx, my = (ax + bx) / 2, (ay + by) / 2
        (px, py), (qx, qy) = ((mx, ay), (mx, by)) if is_wide else ((ax, my), (bx, my))
        path += f"C{px:.0f} {py:.0f} {qx:.0f} {qy:.0f} {bx:.0f} {by:.0f}"
    return path


def _arrow(arrow: Arrow, points: Sequence[tuple[float, float]], is_wide: bool) -> str:
    (before_x, before_y), (x, y) = points[-2:]
    # The curve meets its end along the direction of the picture, which may be against that.
    dx, dy = (-6 if x > before_x else 6, 0) if is_wide else (0, -6 if y > before_y else 6)
    if arrow.source == arrow.target:
        dx, dy = 6, 0
    barbs = [(x + dx + 0.6 * side * dy, y + dy + 0.6 * side * dx) for side in (-1, 1)]
    head = "M" + "L".join(f"{px:.0f} {py:.0f}" for px, py in (barbs[0], (x, y), barbs[1]))
    title = f"<title>{escape(one_line(arrow.title))}</title>" if arrow.title else ""
    return (
        f'<g class="arrow {arrow.sort}">{title}<path d="{curve(points, is_wide)}"/><path class="head" d="{head}"/></g>'
    )


def _legend(entries: Sequence[tuple[str, str]], y: float) -> Iterator[str]:
    x = PAD
    for sort, text in entries:
        yield _arrow(Arrow(0, 1, sort), [(x, y + 6), (x + 30, y + 6)], is_wide=True)
        yield f'<text x="{x + 38 + text_width(text) / 2:.0f}" y="{y + 10:.0f}">{escape(text)}</text>'
        x += 60 + text_width(text)


def _box(box: Box, x: float, y: float) -> Iterator[str]:
    (width, height), title = box.size, one_line(box.title)
    radius = min(height, 30) / 2 if box.sort in ROUND else 4
    left, top = x - width / 2, y - height / 2
    yield f'<g class="item {box.sort}" role="img" aria-label={quoteattr(title)}><title>{escape(title)}</title>'
    yield f'<rect x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}" rx="{radius:.0f}"/>'
    for i, line in enumerate(box.shown):
        yield f'<text x="{x:.0f}" y="{top + 0.6 * PAD + i * LINE + 13:.0f}">{escape(line)}</text>'
    yield "</g>"
    if box.inner is not None:
        inner = box.inner.size
        yield from _contents(box.inner, x - inner[0] / 2, top + height - 0.6 * PAD - inner[1])
