"""The examples in docs/reference/ir-text.md are what irc reads and says."""

import re
from pathlib import Path

import pytest

from irc.errors import Error
from irc.ir import parse_graph, parse_module, structurally_equal

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "ir-text.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```\w*\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_example_prints_as_it_stands() -> None:
    (example,) = [e for e in EXAMPLES if e.startswith("graph(%x : Float(batch, 3),\n")]
    module = parse_module(example)
    module.verify()
    assert str(module) == example
    assert structurally_equal(module, parse_module(str(module))) is None


def test_errors_are_those_shown() -> None:
    (parsing,) = [e for e in EXAMPLES if e.startswith("IRC111")]
    with pytest.raises(Error) as caught:
        parse_graph("graph(%a : Tensor):\n\n  %c : Tensor = aten::relu(%b)\n", filename="model.ir")
    assert f"{caught.value}\n" == parsing
    (verifying,) = [e for e in EXAMPLES if e.startswith("IRC212")]
    graph = parse_graph(
        """graph(%x : Float(2, 3), %c : bool):
        %a : Float(2, 3) = onnx::Relu[since_version=14](%x) # first
        %b : Float(2, 3) = onnx::Add(%a, %a)
        %r : Float(2, 3) = prim::If(%c)
          block0():
            -> (%a)
          block1():
            -> (%b)
        return (%r)"""
    )
    graph.value("b").node.replace_input(1, graph.value("r"))
    with pytest.raises(Error) as caught:
        graph.verify()
    assert f"{caught.value}\n" == verifying
