"""IR text that breaks a rule of the IR: every command that reads it says which node breaks which rule."""

import pytest

from irc import Error, compile
from irc.ir import Graph, Module, parse_graph, parse_module
from tests.cli.helpers import Command
from tests.cli.refusals import assert_refused
from tests.graphs import ir

BAD = {
    "an operator with too few inputs": (
        "IRC213: %r = onnx::Add",
        """graph(%x : Tensor):
  %r : Tensor = onnx::Add(%x)
  return (%r)
""",
    ),
    "an If with one branch": (
        "IRC213: %r = prim::If",
        """graph(%x : Tensor, %c : bool):
  %r : Tensor = prim::If(%c)
    block0():
      -> (%x)
  return (%r)
""",
    ),
    "a fault in a function": (
        "IRC213: %r = onnx::Add",
        ir("""
            x: Tensor -> x

            f | x: Tensor -> r
            r = Add(x)
        """),
    ),
}
"""What is wrong -> how the message begins, and the text. `tests/ir/test_verifier_operators.py` has all other rules."""

COMMANDS = {
    "print": ["print", "m.ir"],
    "alias": ["alias", "m.ir"],
    "alias --why": ["alias", "m.ir", "--why", "x", "r"],
    "opt": ["opt", "m.ir", "-p", "default"],
    "compile": ["compile", "m.ir", "-p", "none", "-o", "out.irc"],
    "compile --check": ["compile", "m.ir", "--check"],
    "run": ["run", "m.ir", "--seed", "0"],
    "bench": ["bench", "m.ir", "--runs", "1"],
}


@pytest.mark.parametrize("argv", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize(("says", "text"), BAD.values(), ids=BAD)
def test_commands_name_the_node(irc: Command, argv: list[str], says: str, text: str):
    irc.write("m.ir", text)
    assert_refused(irc, argv, says)


@pytest.mark.parametrize("passes", ["default", "none"])
@pytest.mark.parametrize(("says", "text"), BAD.values(), ids=BAD)
def test_compile_names_the_node(says: str, text: str, passes: str):
    given: list[Module | Graph] = [parse_module(text)]
    given += [] if "graph f" in text else [parse_graph(text)]
    for model in given:
        with pytest.raises(Error, match=says):
            compile(model, passes)
