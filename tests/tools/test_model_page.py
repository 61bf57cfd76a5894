"""The page of a model: that its data are the model's, and in Chromium, that a reader finds them."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx
import pytest
from hypothesis import given

import irc
from benchmarks.yolov3 import build
from irc.alias import analyze
from irc.demo import bundled_model
from irc.ir import Graph, TensorType, parse_graph
from irc.support.formatting import one_line
from irc.tools.model_page import Recorder, data_of, page_of, render
from tests.browser import CHROMIUM, Browser
from tests.cli.conftest import irc as command  # noqa: F401  # a fixture
from tests.cli.helpers import Command
from tests.drawing.test_svg import CONTROL_FLOW, HOSTILE
from tests.effort import Tune, examples
from tests.programs.generator import FEATURES, Program, programs
from tests.test_control_flow_model import MODEL as NESTED

browser_test = pytest.mark.skipif(CHROMIUM is None, reason="Debian's package chromium is not installed")


MODELS = {
    "squeezenet": lambda: bundled_model("squeezenet"),
    "yolov3": lambda: build(image_size=96, width_divisor=16),
    "whole yolov3": build,
    "control flow": lambda: parse_graph(CONTROL_FLOW),
    "nested": lambda: NESTED,
    "loaded": lambda: bundled_model("squeezenet"),
}
QUICK = [name for name in MODELS if name not in ("whole yolov3", "loaded")]


def compiled(model: Any) -> tuple[irc.CompiledModel, Recorder]:
    recorder = Recorder()
    return irc.compile(model, instruments=[recorder]), recorder


@pytest.mark.parametrize("name", QUICK)
def test_the_data_are_those_of_the_model(name: str) -> None:
    model, recorder = compiled(MODELS[name]())
    data = json.loads(json.dumps(data_of(model, recorder)))
    last, alias, db = data["graphs"][-1], data["graphs"][-1]["alias"], analyze(model.graph, model.module)
    ids = {name: i for i, (name, _, _) in reversed(list(enumerate(last["values"])))}  # groups use names again
    for value in db.values_in_order():
        i = ids[value.name]
        assert last["values"][i][1] == str(value.type)
        shown = [alias["locations"][place] for place in alias["sets"][alias["of"][i]]]
        assert shown == sorted(map(str, db.locations(value)))
        writers = [last["nodes"][n]["kind"] for n in alias["writers"].get(str(i), [])]
        assert writers == [node.kind for node in db.writers(value)] if db.has_writers(value) else not writers
    assert [remark["lines"] for remark in data["remarks"]] == [remark.lines() for remark in model.remarks]
    memory, plan = model.report.memory, model.runs.expected()
    assert (plan is None) == (data["memory"] is None)
    if plan is not None:
        shown = data["memory"]
        assert (shown["arena"], shown["bound"], shown["peak"]) == (memory.arena, memory.bound, memory.peak)
        assert max((offset + size for offset, size, *_ in shown["places"]), default=0) <= shown["arena"]
        assert_places_are_apart(shown["places"])
    runs = [run.name for run in model.report.passes if run.changed]
    assert [row[0] for row in data["passes"] if row[2]] == runs
    assert [row[3] for row in data["passes"] if row[3] is not None] == list(range(1, len(data["graphs"]) - 1))


def assert_places_are_apart(places: list[list[Any]]) -> None:
    """No two overlap in memory at one time."""
    for i, (offset, size, first, last, _) in enumerate(places):
        for other, other_size, begin, end, _ in places[:i]:
            assert first > end or last < begin or offset >= other + other_size or offset + size <= other


def test_states_are_left_out_when_they_are_too_many(tune: Tune) -> None:
    tune("irc.tools.model_page.MOST_BOXES", 50)
    model, recorder = compiled(bundled_model("squeezenet"))
    data = data_of(model, recorder)
    changed = [row[3] for row in data["passes"] if row[2]]
    assert len(data["graphs"]) == 3 and changed == [1] + [None] * (len(changed) - 1)


def test_a_graph_where_all_may_be_all_takes_no_square_of_room() -> None:
    lines = "".join(f"  %v{i} : Tensor = custom::f(%{f'v{i - 1}' if i else 'x'})\n" for i in range(600))
    graph = parse_graph(f"graph(%x : Tensor):\n{lines}  return (%v599)\n")
    assert len(page_of(graph)) < 2_000_000


def test_a_page_holds_no_markup_of_the_model() -> None:
    graph = Graph()
    graph.set_outputs([graph.add_input(TensorType(), name) for name in HOSTILE])
    page = page_of(*compiled(graph))
    assert page.isascii() or page.encode("utf-8")
    assert len(re.findall("<script", page)) == len(re.findall("</script", page)) == 2
    script = re.search(r"<script type=\"application/json\" id=\"data\">(.*?)</script>", page, re.DOTALL)
    assert script is not None and HOSTILE[0] in [value[0] for value in json.loads(script[1])["graphs"][0]["values"]]
    assert re.findall('https?:[^"]*', page) == ["http://www.w3.org/2000/svg"]


def test_the_command(command: Command) -> None:  # noqa: F811
    command.write("g.ir", CONTROL_FLOW)
    assert command("report", "g.ir", "-o", "g.html").status == 0
    page = (command.folder / "g.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>") and "<h1>g.ir</h1>" in page
    assert command("report", "g.ir").out.startswith("<!DOCTYPE html>")
    onnx.save(bundled_model("squeezenet"), command.folder / "s.onnx")
    assert command("compile", "s.onnx", "-o", "s.irc").status == 0
    assert command("report", "s.irc", "--profile", "-o", "s.html").status == 0
    assert re.search(r'"times":\{"\d+":"[\d.]+ ms of ', (command.folder / "s.html").read_text("utf-8"))
    refused = command("report", "g.ir", "-o", "g.txt")
    assert refused.status == 1 and "must end in .html or .htm" in refused.err
    assert command("report", "g.ir", "--dim", "n=1").status == 2
    command.write("u.ir", "graph(%x : Tensor):\n  %y : Tensor = custom::f(%x)\n  return (%y)\n")
    shown = command("report", "u.ir")
    assert shown.status == 0 and "cannot be run" in shown.err and "custom::f" in shown.out
    assert command("report", "u.ir", "--profile").status == 1


# What a reader sees and does, in Chromium.


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@pytest.fixture
def opened(browser: Browser, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Browser, Any]]:
    """The browser, on the page of a model that has been compiled."""
    model, recorder = compiled(MODELS[request.param]())
    if request.param == "loaded":
        model.save(tmp_path / "model.irc")
        model, recorder = irc.load(tmp_path / "model.irc"), None
    page = tmp_path / "page.html"
    page.write_text(page_of(model, recorder), "utf-8")
    browser.resize(1400, 900)
    browser.open(page)
    yield browser, model
    assert browser.faults == [] and browser.requested == [page.as_uri()]


def on(*names: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("opened", names, indirect=True)


FIND_EACH = """(names => names.map(name => {
    const search = document.getElementById("search");
    search.value = name;
    search.dispatchEvent(new Event("input"));
    const hit = document.querySelector("#hits button");
    if (!hit) return [name, null, null];
    hit.click();
    const became = document.querySelector(".became button");
    const text = document.querySelector("#details").textContent;
    if (became) became.click();
    return [name, became ? became.title : null, text];
}))"""


@browser_test
@on("squeezenet", pytest.param("whole yolov3", marks=pytest.mark.slow), "nested")
def test_each_node_of_the_model_is_found_and_leads_to_what_became_of_it(opened: tuple[Browser, Any]) -> None:
    browser, _ = opened
    graphs = browser.run("JSON.parse(document.getElementById('data').textContent).graphs")
    first, last = graphs[0], graphs[-1]
    sources = {name for node in last["nodes"] for name in node["from"]}
    named = [node for node in first["nodes"] if not node["constant"]]
    names = [node["name"] or first["values"][node["out"][0]][0] for node in named]
    found = browser.run(f"{FIND_EACH}({json.dumps(names)})")
    assert [name for name, *_ in found] == names
    led = 0
    for node, (name, became, text) in zip(named, found):
        assert text is not None, name
        assert became is not None or "stands for it" in text
        led += became is not None
        assert became is not None or not sources & set(node["from"]), name
    assert led > len(names) * 0.4


@browser_test
@on("control flow")
def test_a_click_shows_aliases_writers_and_why(opened: tuple[Browser, Any]) -> None:
    browser, model = opened
    db = analyze(model.graph, model.module)
    for name in ("w", "s", "z", "y"):
        value = model.graph.value(name)
        browser.run("document.getElementById('search').value = ''")
        browser.click("#search")
        browser.type(f"%{name}")
        browser.settle()
        browser.press("Enter")
        shown = browser.texts(f'#details [data-value="{name}"] .alias-set li')
        assert shown == sorted(map(str, db.locations(value)))
        writers = browser.texts(f'#details [data-value="{name}"] .writers li')
        assert len(writers) == len(db.writers(value)) > 0 and "aten::add_" in writers[0]
        assert any("may be" in fact for fact in browser.texts(f'#details [data-value="{name}"] .why li'))
        assert browser.texts("#details .type")[0] == str(value.type)


@browser_test
@on("yolov3")
def test_remarks_stand_beside_their_nodes_and_memory_is_the_reports(opened: tuple[Browser, Any]) -> None:
    browser, model = opened
    reasons = browser.texts("#remarks .reason")
    assert reasons == ["\n".join(remark.lines()) for remark in model.remarks[:500]] and reasons
    browser.click("#remarks li button")
    assert reasons[0] in browser.texts("#details .remarks li")[0]
    chart = browser.run("({...document.querySelector('.chart').dataset})")
    memory = model.report.memory
    assert [int(chart[name]) for name in ("arena", "bound", "peak")] == [memory.arena, memory.bound, memory.peak]
    marked = browser.run("[...document.querySelectorAll('.remark')].map(e => e.parentElement.textContent)")
    assert marked and all(any(remark.lines()[0] in text for remark in model.remarks) for text in marked)
    browser.click(".chart .place", 3)
    assert browser.texts("#details section.value")
    browser.click("#passes button")
    assert browser.run("document.querySelectorAll('.pane select')[1].value") == "1"
    assert browser.run("document.querySelectorAll('.pane')[1].querySelectorAll('.differs').length") > 0
    browser.click("#remarks li button")  # which goes back to the last state
    assert reasons[0] in browser.texts("#details .remarks li")[0]
    did = " ".join(browser.texts("#passes .effects"))
    assert all(f"{name.partition('.')[2]} {n}" in did for name, n in model.report.stats.items() if name[:3] == "cse")


@browser_test
@on("control flow")
def test_blocks_fold_by_mouse_and_keyboard(opened: tuple[Browser, Any]) -> None:
    browser, _ = opened
    count = "document.querySelectorAll('.pane')[0].querySelectorAll('.item').length"
    whole = browser.run(count)
    fold = browser.run("(b => [b.x + 4, b.y + 4])(document.querySelector('.fold').getBoundingClientRect())")
    browser.click_at(*fold)
    assert browser.run(count) < whole
    browser.run("document.querySelector('.canvas').focus()")
    for _ in range(8):
        browser.press("ArrowDown")
        if browser.texts("#details h2") == ["prim::Loop"]:
            break
    assert browser.texts("#details h2") == ["prim::Loop"]
    browser.press("Enter")
    assert browser.run(count) == whole
    browser.click('[title="fold all blocks and groups"]')
    assert browser.run(count) < whole


@browser_test
@on("control flow", "nested", "squeezenet")
def test_boxes_lie_inside_of_each_other_or_apart(opened: tuple[Browser, Any]) -> None:
    """However much is unfolded."""
    browser, _ = opened
    browser.resize(4000, 6000)
    browser.click('[title="unfold all blocks and groups"]', 1)
    rects = browser.run(RECTS)
    assert len(rects) > 10
    for i, (left, top, right, bottom) in enumerate(rects):
        for a, b, c, d in rects[:i]:
            apart = right <= a or c <= left or bottom <= b or d <= top
            inside = a < left and right < c and b < top and bottom < d
            assert apart or inside or (left < a and c < right and top < b and d < bottom)


@browser_test
@on("loaded")
def test_a_compiled_model_has_one_state(opened: tuple[Browser, Any]) -> None:
    browser, model = opened
    assert browser.run("document.querySelectorAll('.pane')[0].hidden")
    browser.click("#search")
    browser.type("FusionGroup")
    browser.settle()
    browser.press("Enter")
    assert browser.texts("#details h2") == ["prim::FusionGroup"] and not browser.texts(".became")
    name = browser.texts("#details section.value .name")[0].removeprefix("%")
    db = analyze(model.graph, model.module)
    assert browser.texts("#details .alias-set li") == sorted(map(str, db.locations(model.graph.value(name))))


RECTS = """[...document.querySelectorAll('.pane')[1].querySelectorAll('.item rect')].map(e => {
    const at = Object.fromEntries(["x", "y", "width", "height"].map(name => [name, Number(e.getAttribute(name))]));
    return [at.x, at.y, at.x + at.width, at.y + at.height];
})"""


@browser_test
@on("squeezenet")
def test_wide_and_narrow_windows_in_both_themes_and_on_paper(opened: tuple[Browser, Any]) -> None:
    browser, _ = opened
    for width in (1400, 480):
        browser.resize(width, 900)
        browser.settle()
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
        assert browser.run("Math.min(...[...document.querySelectorAll('.canvas')].map(c => c.clientWidth))") > 300
    colours = []
    for theme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        colours.append(browser.run("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(255, 255, 255)", "rgb(22, 24, 29)"]
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.run("dispatchEvent(new Event('beforeprint'))")
    parts = browser.run(
        "[...document.querySelectorAll('.canvas, #details, #summary, #memory')].map(e => e.getBoundingClientRect())"
        ".map(b => [b.top, b.bottom])"
    )
    assert len(parts) == 5 and all(bottom <= top for (_, bottom), (top, _) in pairwise(parts))
    assert parts[0][1] - parts[0][0] > 2000  # all of it
    assert browser.texts("button.link") and len(browser.call("Page.printToPDF")["data"]) > 20_000
    browser.call("Emulation.setEmulatedMedia", features=[])
    unnamed = (
        "[...document.querySelectorAll('button, select, input, svg')].filter(e => !(e.ariaLabel || e.textContent))"
    )
    assert browser.run(f"{unnamed}.length") == 0


@browser_test
def test_what_is_drawn_at_once_is_bounded(browser: Browser, tmp_path: Path) -> None:
    """However large the graph, and however far away it is seen from."""
    lines = [f"  %v{i} : Float(8) = onnx::Add(%v{i - 1}, %v{max(0, i - 7)})" for i in range(1, 1000)]
    text = "\n".join(["graph(%v0 : Float(8)):", *lines, "  return (%v999)"])
    page = tmp_path / "large.html"
    page.write_text(page_of(*compiled(parse_graph(text))), "utf-8")
    browser.open(page)
    count = "document.querySelectorAll('.canvas *').length"
    assert browser.run(count) < 2500
    browser.click('[title="show all of it"]')
    assert browser.run(count) < 2500 and browser.run("document.querySelector('.canvas').classList.contains('is-far')")
    browser.click("#search")
    browser.type("v500")
    browser.settle()
    browser.press("Enter")
    assert browser.run("document.querySelectorAll('.marks .chosen').length") == 1
    assert browser.faults == []


@browser_test
@pytest.mark.parametrize("name", HOSTILE, ids=["script", "quotes", "long", "marks", "Arabic"])
def test_no_name_runs_code_or_breaks_the_page(name: str, browser: Browser, tmp_path: Path) -> None:
    graph = Graph()
    given = graph.add_input(TensorType(), name)
    node = graph.create("onnx::Relu", [given], [TensorType()], names=[f"{name}!"], name=name)
    graph.block.append(node)
    graph.set_outputs(node.outputs)
    page = tmp_path / "hostile.html"
    model, recorder = compiled(graph)
    model.report.name = f"<img src=x onerror=alert(1)>{name[:200]}"
    page.write_text(page_of(model, recorder), "utf-8")
    browser.open(page)
    browser.click("#search")
    browser.type("Relu")
    browser.settle()
    browser.press("Enter")
    assert browser.texts("#details h2") == ["onnx::Relu"] and browser.texts(".became li")
    whole = one_line(f"%{name}! = onnx::Relu '{name}'")
    assert whole in [title.partition("\n")[0] for title in browser.texts(".item title")]
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert browser.run("document.querySelectorAll('script').length") == 2
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.faults == [] and browser.requested == [page.as_uri()]


def test_the_page_refuses_scripts_but_its_own() -> None:
    page = render({"title": "t"})
    assert "default-src 'none'; script-src 'sha256-" in page


@examples(15)
@given(programs(features=FEATURES, size=30))
def test_alias_sets_of_any_program(program: Program) -> None:
    """Values of functions and groups may have the names of the graph's."""
    graph = program.graph
    shown = data_of(graph)["graphs"][0]
    first: dict[str, int] = {}
    for i, (name, _, _) in enumerate(shown["values"]):
        first.setdefault(name, i)
    db, alias = analyze(graph, graph.module), shown["alias"]
    for value in db.values_in_order():
        found = alias["sets"][alias["of"][first[value.name]]]
        assert [alias["locations"][place] for place in found] == sorted(map(str, db.locations(value)))
    render(data_of(graph))
