"""The figures of the documentation: ``python -m tests.figures`` draws them anew, ``tests/test_figures.py`` compares.

An alias graph is drawn for each block of IR with a title (``ir title="views.ir"``) on the pages that `ALIAS_PAGES`
names, as ``figures/views.svg`` beside the page: what ``irc alias views.ir --format svg`` prints. So text and figure
cannot disagree. So is the graph of ``docs/how-to/see-a-model.md``. `diagrams` states the other figures as boxes and
arrows. Where Chromium is installed, `photograph` shows the page that ``irc report`` makes of SqueezeNet.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import irc
from irc.alias import analyze
from irc.alias.drawing import picture_of
from irc.demo import bundled_model
from irc.drawing import Arrow, Box, Picture, to_svg
from irc.ir import parse_module
from irc.ir.drawing import picture_of as graph_picture
from irc.passes import PassManager
from irc.tools.model_page import Recorder, page_of
from tests.browser import CHROMIUM, Browser
from tests.doc_blocks import blocks
from tests.layers import direct_imports

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
ALIAS_PAGES = tuple(
    DOCS / page for page in ("tutorial/alias-analysis.md", "tutorial/slices.md", "explanation/alias-analysis.md")
)


def diagram(title: str, arrows: str, labels: Mapping[str, str] | None = None) -> Picture:
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
    number = {key: i for i, key in enumerate(sorts)}
    texts = {key: (labels or {}).get(key, key.replace("_", " ")) for key in sorts}
    boxes = [Box(texts[key].split("\n"), texts[key], sort) for key, sort in sorts.items()]
    return Picture(title, boxes, [Arrow(number[a], number[b], sort) for a, b, sort in edges])


def _architecture() -> Picture:
    edges = [(a, b, "types" if is_for_types else "flow") for a, b, is_for_types in direct_imports()]
    arrows = "; ".join(f"{a} {'.>' if sort == 'types' else '->'} {b}" for a, b, sort in edges)
    return diagram("Which layer of irc imports which", arrows)


def diagrams() -> dict[str, Picture]:
    """The figures that are no alias graphs, by their paths below ``docs/``."""
    return {
        "explanation/figures/layers.svg": _architecture(),
        "explanation/figures/life.svg": diagram(
            "A model's path through irc",
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
                module = parse_module(block.text)
                picture = picture_of(analyze(module.main, module))
                found[page.parent / "figures" / f"{Path(block.title).stem}.svg"] = to_svg(picture)
    page = DOCS / "how-to" / "see-a-model.md"
    module = parse_module(next(block.text for block in blocks(page) if block.title == "model.ir"))
    PassManager("dce,fuse,dce").run(module)
    found[page.parent / "figures" / "model.svg"] = to_svg(graph_picture(module))
    for path, picture in diagrams().items():
        found[DOCS / path] = to_svg(picture)
    return found


def photograph() -> None:
    """Write the pictures of a page in a wide and in a narrow window, with a node chosen."""
    recorder = Recorder()
    model = irc.compile(bundled_model("squeezenet"), instruments=[recorder])
    model.report.name = "squeezenet.onnx"
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        page = Path(folder) / "page.html"
        page.write_text(page_of(model, recorder), "utf-8")
        for name, width, height in (("wide", 1400, 1250), ("narrow", 480, 900)):
            browser.resize(width, height)
            browser.open(page)
            browser.click("#search")
            browser.type("r8")
            browser.settle()
            browser.press("Enter")
            browser.screenshot(DOCS / "how-to" / "figures" / f"report-{name}.png")


if __name__ == "__main__":
    for path, text in figures().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    if CHROMIUM is not None:
        photograph()
