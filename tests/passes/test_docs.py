"""The worked example of docs/how-to/writing-a-pass.md does what the page says."""

import re
import sys
from pathlib import Path

import pytest

from irc.ir import parse_graph
from irc.passes import PassContext, PassManager, create_instruments
from tests.doc_blocks import blocks, file_of
from tests.passes.helpers import CHECKS

PATH = Path(__file__).parents[2] / "docs" / "how-to" / "writing-a-pass.md"
PAGE = PATH.read_text()


@pytest.fixture
def square(tmp_path, monkeypatch, own_registries):
    (tmp_path / "square.py").write_text(file_of(PATH, "square.py"))
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("square", None)


def test_filecheck_example(square):
    from square import Square

    (text,) = [block.text for block in blocks(PATH) if "# RUN" in block.text]
    graph = parse_graph(text)
    PassManager([Square()], create_instruments(CHECKS)).run(graph)
    wanted = [line.split(": ", 1)[1].strip() for line in text.splitlines() if line.startswith("# CHECK-NEXT")]
    assert [line.strip() for line in str(graph).splitlines()[1:]] == wanted


@pytest.mark.parametrize(
    ("x", "power", "y", "is_square"),
    [
        ("Float(3)", "Float(1) = prim::Constant[value=tensor([2.])]", "Float(3)", True),
        ("Float(3)", "Float(1, 1) = prim::Constant[value=tensor([2.])]", "Float(1, 3)", False),
        ("Tensor", "Float() = prim::Constant[value=tensor([2.])]", "Tensor", False),
        ("Float(*)", "Float(1) = prim::Constant[value=tensor([2.])]", "Float(*)", True),
        ("Float", "Float(1) = prim::Constant[value=tensor([2.])]", "Float", False),
        ("Float", "Float() = prim::Constant[value=tensor([2.])]", "Float", True),
        ("Long(3)", "Float() = prim::Constant[value=tensor([2.])]", "Long(3)", True),
    ],
)
def test_only_what_keeps_shape_and_type_is_a_square(square, x, power, y, is_square):
    from square import Square

    text = f"graph(%x : {x}):\n  %two : {power}()\n  %y : {y} = onnx::Pow(%x, %two)\n  return (%y)"
    graph = parse_graph(text)
    PassManager([Square()], create_instruments(CHECKS)).run(graph)
    assert any(node.kind == "onnx::Mul" for node in graph.walk()) is is_square


def test_every_instrument_and_rewriter_call_named_exists():
    from irc.passes import INSTRUMENTS, Rewriter, instruments

    table = PAGE[PAGE.index("| name | what it does |") :]
    named = re.findall(r"`([a-z-]+)`", "".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)))
    assert set(named) == set(INSTRUMENTS)
    for name in re.findall(r"`([A-Z]\w+)\(", table):
        assert hasattr(instruments, name)
    calls = PAGE[PAGE.index("| call | what it does |") : PAGE.index("`replace` keeps")]
    offered = {name for name, member in vars(Rewriter).items() if callable(member) and not name.startswith("_")}
    assert set(re.findall(r"`(\w+)\(", calls)) == offered


def test_all_that_a_pass_is_lent_is_listed():
    table = PAGE[PAGE.index("| member | what it is |") : PAGE.index("## Asking the alias analysis")]
    named = set(re.findall(r"`(\w+)[`(]", "".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))))
    members = {name for name in {*vars(PassContext), *vars(PassContext())} if not name.startswith("_")}
    other = {"analyses", "built_alias_db"}
    other |= {"allowed", "begin", "last_allowed", "limit", "pass_name", "remarks", "stats", "trial"}
    assert named == members - other  # the rest is the manager's
