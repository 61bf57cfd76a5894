"""Numbers, and what people see when they print irc's objects."""

import ast
import re
from collections.abc import Iterator

import numpy as np
import pytest

import irc
from irc.alias import analyze
from irc.ir import parse_module
from irc.runtime.report import Memory, Report
from irc.runtime.session import CONVENTIONS
from irc.support.formatting import count, first_of, pointed_at
from irc.tools import report_text
from tests.layers import ROOT, sources

TEXT = "graph(%x : Float(2)):\n  %y : Float(2) = onnx::Relu(%x)\n  return (%y)\n"
COND = """graph(%c : Bool(), %x : Float(2)):
  %y : Float(2) = prim::If(%c)
    block0():
      %a : Float(2) = onnx::Relu(%x)
      -> (%a)
    block1():
      -> (%x)
  return (%y)
"""


def test_carets_stand_under_what_is_meant() -> None:
    assert pointed_at("abc", 1, 2) == "\n  abc\n   ^^"
    assert pointed_at("abc", 0, indent="") == "\nabc\n^"


def test_the_singular() -> None:
    assert [count(n, "byte") for n in (0, 1, 2000)] == ["0 bytes", "1 byte", "2,000 bytes"]
    assert [first_of(n, "node", "%x") for n in (1, 2)] == ["1 node %x", "2 nodes, the first %x"]
    assert [count(n, "copy", "copies") for n in (1, 2)] == ["1 copy", "2 copies"]


def test_a_report_counts_right() -> None:
    report = Report(alias={"values": 1, "locations": 2, "writes": 1})
    assert report_text.aliasing(report) == "1 value, 2 locations, 1 write"


def test_a_report_says_why_memory_is_unknown() -> None:
    assert report_text.memory(Report(memory=Memory(0, None))).endswith("of unknown size: not all shapes are known")
    planned = report_text.memory(Report(memory=Memory(0, 5_000_000, 3_000_000, 2_000_000))).splitlines()
    assert planned[0].endswith("at most 5.0 MB")
    assert planned[1:] == ["planned: 3.0 MB for results, of which at least 2.0 MB are needed"]


def test_a_limit_of_one_byte() -> None:
    with pytest.raises(irc.Error, match=r"the limit of the run is 1 byte \("):
        irc.compile(parse_module(TEXT)).run({"x": np.ones(2, np.float32)}, limits=irc.Limits(bytes=1))


def test_graphs_blocks_modules_and_analyses_show_themselves_in_a_line() -> None:
    module = parse_module(COND)
    graph = module.main
    node = next(iter(graph.nodes))
    assert repr(graph) == "<graph 'main', 2 nodes>"
    assert repr(module) == "<module 'main', 1 graph, 0 weights>"
    assert repr(graph.block) == "<block of <graph 'main', 2 nodes>, 1 node>"
    assert repr(node.blocks[0]) == f"<block of {node!r}, 1 node>"
    assert repr(analyze(graph)) == "<alias analysis of <graph 'main', 2 nodes>>"


def test_a_profile_prints_as_text() -> None:
    profile = irc.compile(parse_module(TEXT)).profile({"x": np.ones(2, np.float32)})
    text = str(profile)
    assert "onnx::Relu, 1 call, 0 in place, 1 fresh, 8 bytes made" in text and "1 unit" in text and "1 kernel," in text
    assert "Profile(" not in text


def test_every_convention_of_caches_is_named() -> None:
    with pytest.raises(irc.Error, match="IRC417") as caught:
        irc.Session(irc.compile(parse_module(TEXT)))
    for past, present in CONVENTIONS:
        assert f"{past}* and {present}*" in caught.value.message


PRIVATE = re.compile(
    r"(?<!round )(?<!round-)\btrips?\b(?! count)|\b(twins?|lent|lend(s|ing)?|loans?|onward|wardens?|likeness(es)?"
    r"|spel(t|ls?) out|made over|put off|whole numbers?|so many|the like|no telling|hand(s|ed)? on|at the most"
    r"|(?<= )anew|(?<!there )is no (array|class|element type|function|integer|list|model|number|pass|shape|string"
    r"|tensor|text|type|value))\b",
    re.IGNORECASE,
)
"""Words that readers do not know: iteration, in-place variant, donated, decomposed, integer... are meant."""


def _prose() -> Iterator[tuple[str, str]]:
    """Yield (place, text): first lines of docstrings, messages, and pages without their blocks of code."""
    for source in sources():
        docstrings: set[int] = set()
        for node in source.nodes:
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                docstrings.add(id(node.body[0].value))  # type: ignore[attr-defined]
                yield f"{source.name}.{getattr(node, 'name', '')}", text.partition("\n")[0]
        for node in source.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield f"{source.name}:{node.lineno}", node.value
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        yield from ((f"{page.name}:{i}", line) for i, line in enumerate(text.splitlines(), 1))


def test_first_lines_of_docstrings_are_an_index() -> None:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [(source.name, node) for source in sources() for node in source.nodes if isinstance(node, kinds)]
    lines = [(name, (ast.get_docstring(node) or "").partition("\n")[0]) for name, node in nodes]
    assert not [(name, line) for name, line in lines if len(line) > 100 or line.endswith(",")]


def test_no_private_words() -> None:
    found = [f"{place}: {m[0]}: {text[:90]}" for place, text in _prose() if (m := PRIVATE.search(text))]
    assert not found, "\n".join(found)
