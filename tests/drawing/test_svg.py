"""Pictures as SVG: what is read of them by eyes, by screen readers and on paper."""

import re
from collections.abc import Iterator
from html import escape
from itertools import combinations
from random import Random
from xml.etree import ElementTree

import numpy as np
import pytest

import irc
from irc.alias import analyze
from irc.alias.drawing import FEW, picture_of
from irc.drawing import Arrow, Box, Picture, to_svg
from irc.drawing.svg import ARROWS, DARK, FILLS, LIGHT, cut
from irc.ir import Graph, parse_graph
from irc.ir import drawing as graphs
from irc.ir.types import TensorType
from tests.graphs import ir

SVG = "{http://www.w3.org/2000/svg}"
CONTROL_FLOW = ir("""
    x: Float(3); n: int; c: bool -> y
    z: Float(3) = Relu(x); y: Float(3) = prim.Loop(n, True, z)
    with block(i=int, s=Float(3)):
        q: Float(3) = prim.If(c)
        with block(): u: Float(3) = Neg(s); yield u
        with block(): w: Float(3) = add_(s, z, n); yield w
        yield True, q
""")
HOSTILE = ["</script><script>alert(1)</script>", "\"'&<>]]>", "a" * 100_000, "\u202eabc\u0000\ud800", "مرحبا"]


def boxes_of(svg: str) -> dict[str, ElementTree.Element]:
    """The boxes by what a screen reader says of them."""
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "group" and root.get("aria-label")
    found = {each.get("aria-label", ""): each for each in root.iter(f"{SVG}g") if each.get("role") == "img"}
    for label, each in found.items():
        title = each.find(f"{SVG}title")
        assert title is not None and title.text == label
    return found


def test_a_graph_with_control_flow() -> None:
    """Each node has a box inside of that of the node around it; what a block captures stands in it, dashed."""
    boxes = boxes_of(to_svg(graphs.picture_of(parse_graph(CONTROL_FLOW))))
    spans = {}
    for label, box in boxes.items():
        rect = box.find(f"{SVG}rect")
        assert rect is not None
        x, y, w, h = (float(rect.get(name, "")) for name in ("x", "y", "width", "height"))
        spans[label.partition("\\n")[0]] = x, y, x + w, y + h
    for inner, outer in [("%q = prim::If", "%y = prim::Loop"), ("%w = aten::add_", "%q = prim::If")]:
        (a, b, c, d), (left, top, right, bottom) = spans[inner], spans[outer]
        assert left < a and top < b and c < right and d < bottom
    assert "item capture" in {box.get("class") for box in boxes.values()}
    assert not any("prim::Constant" in label for label in boxes)


@pytest.mark.parametrize("name", HOSTILE, ids=["script", "quotes", "long", "marks", "Arabic"])
def test_any_name_is_shown_cut_and_said_whole(name: str) -> None:
    graph = Graph()
    value = graph.add_input(TensorType(), name)
    graph.set_outputs([value])
    for svg in (to_svg(graphs.picture_of(graph)), to_svg(picture_of(analyze(graph)))):
        root = ElementTree.fromstring(svg)
        texts = [each.text or "" for each in root.iter(f"{SVG}text")]
        assert max(map(len, texts)) <= 32 and len(svg) < 20_000 + 30 * len(name)
        assert {each.tag.removeprefix(SVG) for each in root.iter()} <= set("svg g rect text title path style".split())
        whole = name.encode("unicode_escape").decode() if not name.isprintable() else name
        assert any(whole in label for label in boxes_of(svg))


def test_names_are_cut_in_the_middle() -> None:
    assert cut("model.layers.0.attention.query", 12) == "model.….query"[:6] + "…query"
    assert cut("short", 12) == "short" and len(cut("x" * 13, 12)) == 12


def along(path: str) -> Iterator[tuple[float, float]]:
    """Points of a path of cubic curves."""
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", path)]
    points = list(zip(numbers[::2], numbers[1::2]))
    for i in range(0, len(points) - 1, 3):
        for t in (0.1, 0.3, 0.5, 0.7, 0.9):
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            yield tuple(sum(w * p[axis] for w, p in zip(weights, points[i : i + 4])) for axis in (0, 1))  # type: ignore[misc]


@pytest.mark.parametrize("is_wide", [False, True])
def test_arrows_meet_no_box_but_their_own(is_wide: bool) -> None:
    """Boxes of very different sizes, and arrows across several layers, forth and back."""
    draw = Random(0)
    boxes = [Box(["x" * draw.randrange(1, 30)] * draw.choice((1, 2, 9)), str(i)) for i in range(40)]
    pairs = [(max(0, b - draw.randrange(1, 12)), b) for b in range(1, 40) for _ in range(2)]
    picture = Picture("many", boxes, [Arrow(*pair, leads_back=i % 5 == 0) for i, pair in enumerate(pairs)], is_wide)
    root = ElementTree.fromstring(to_svg(picture))
    rects = [
        [float(r.get(name, "")) for name in ("x", "y", "width", "height")]
        for r in root.iter(f"{SVG}rect")
        if r.get("x")
    ]
    paths = [path.get("d", "") for path in root.iter(f"{SVG}path") if path.get("class") != "head"]
    assert len(rects) == 40 and len(paths) == len(pairs)
    for pair, path in zip(pairs, paths):
        others = [rect for i, rect in enumerate(rects) if i not in pair]
        for x, y in along(path):
            assert not any(a + 1 < x < a + w - 1 and b + 1 < y < b + h - 1 for a, b, w, h in others)


def test_functions_of_a_module_have_a_box_each() -> None:
    picture = Picture("two", [Box(["f"], "f", inner=Picture("f", [Box(["x"], "x")])), Box(["g"], "g")])
    assert list(boxes_of(to_svg(picture))) == ["f", "x", "g"]


def test_the_alias_graph_shows_memory_that_nothing_shares_in_small_graphs_only() -> None:
    chain = "graph(%x : Float(3)):\n" + "".join(
        f"  %v{i} : Float(3) = onnx::Relu(%{f'v{i - 1}' if i else 'x'})\n" for i in range(FEW)
    )
    small = "graph(%x : Float(3)):\n  %y : Float(3) = onnx::Relu(%x)\n  return (%y)\n"
    assert "%y : Float(3)" in boxes_of(to_svg(picture_of(analyze(parse_graph(small)))))
    large = parse_graph(f"{chain}  return (%v1)\n")
    assert "%v1 : Float(3)" not in boxes_of(to_svg(picture_of(analyze(large))))


def test_notebooks_show_pictures_of_bounded_size() -> None:
    lines = "".join(f"  %v{i} : Tensor = aten::relu_(%{f'v{i - 1}' if i else 'x'})\n" for i in range(2000))
    graph = parse_graph(f"graph(%x : Tensor):\n{lines}  return (%v1999)\n")
    for shown in (graph, analyze(graph)):
        html = shown._repr_html_()
        assert " more<" in html.replace(" nodes", "") and 5_000 < len(html) < 400_000
        ElementTree.fromstring(html)


def test_notebooks_show_models_and_their_reports() -> None:
    name = HOSTILE[0]
    graph = Graph()
    graph.set_outputs([graph.add_input(TensorType(), name)])
    model = irc.compile(graph)
    for shown in (model, model.report, irc.CompiledModel(graph)):
        html = shown._repr_html_()
        assert "<script" not in html
        ElementTree.fromstring(f"<div>{html}</div>")
    assert model.report._repr_html_() in model._repr_html_() and escape(name) in model._repr_html_()


# What readers can tell apart. Channels of colours are linear below.


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(a: str, b: str) -> float:
    """The contrast ratio of WCAG 2."""
    dark, light = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (a, b))
    return (light + 0.05) / (dark + 0.05)


DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
)
PROTANOPIA = np.array(
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
)
"""How colours are seen: Machado, Oliveira and Fernandes, 2009."""


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_can_be_read_and_told_apart(theme: dict[str, str]) -> None:
    assert LIGHT.keys() == DARK.keys() == {*FILLS.values(), *(colour for colour, _ in ARROWS.values()), "ink", "paper"}
    for fill in {*FILLS.values(), "paper"}:
        assert contrast(theme["ink"], theme[fill]) >= 7
    for line in {colour for colour, _ in ARROWS.values()}:
        assert contrast(theme[line], theme["paper"]) >= 4.5
    for seen in (np.eye(3), DEUTERANOPIA, PROTANOPIA):
        colours = {name: seen @ linear(theme[name]) for name in ("line", "write-line", "hold-line")}
        for a, b in combinations(colours.values(), 2):
            assert np.abs(np.cbrt(np.clip(a, 0, 1)) - np.cbrt(np.clip(b, 0, 1))).max() > 0.1
    assert len({dashes for sort, (_, dashes) in ARROWS.items() if sort in ("denotes", "holds", "writes")}) == 3


def test_paper_is_white_in_either_theme() -> None:
    svg = to_svg(Picture("one", [Box(["x"], "x")]))
    themes = re.findall(r"@media ([^{]*)\{", svg)
    assert themes == ["screen and (prefers-color-scheme:dark)"] and "--paper:#ffffff" in svg
