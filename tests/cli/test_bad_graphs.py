"""IR text that breaks a rule of the IR: every command that reads it says which node breaks which rule."""

from __future__ import annotations

import pytest

from irc import Error, compile
from irc.ir import Graph, Module, parse_graph, parse_module
from tests.cli.helpers import Command
from tests.cli.refusals import assert_refused

BAD = {
    "an operator with too few inputs": (
        "IRC213: %r = onnx::Add",
        """graph(%x : Tensor):
  %r : Tensor = onnx::Add(%x)
  return (%r)
""",
    ),
    "a version that the operator does not have": (
        "IRC217: %r = onnx::Relu",
        """graph(%x : Float(2, 3)):
  %r : Tensor = onnx::Relu[since_version=99](%x)
  return (%r)
""",
    ),
    "an attribute left out": (
        "IRC215: %r = onnx::Concat",
        """graph(%x : Float(2, 3)):
  %r : Tensor = onnx::Concat(%x)
  return (%r)
""",
    ),
    "an attribute of another kind": (
        "IRC215: %r = onnx::Transpose",
        """graph(%x : Float(2, 3)):
  %r : Tensor = onnx::Transpose[perm="a"](%x)
  return (%r)
""",
    ),
    "an operand of another kind": (
        "IRC214: %r = onnx::Add",
        """graph(%x : Float(2, 3)):
  %s : str = prim::Constant[value="a"]()
  %r : Tensor = onnx::Add(%x, %s)
  return (%r)
""",
    ),
    "an If without branches": (
        "IRC213: %r = prim::If",
        """graph(%x : Tensor, %c : bool):
  %r : Tensor = prim::If(%c)
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
    "an If whose branches return different numbers": (
        "IRC213: %r = prim::If",
        """graph(%x : Tensor, %c : bool):
  %r : Tensor = prim::If(%c)
    block0():
      -> (%x)
    block1():
      -> ()
  return (%r)
""",
    ),
    "an If without a condition": (
        "IRC213: %r = prim::If",
        """graph(%x : Tensor):
  %r : Tensor = prim::If()
    block0():
      -> (%x)
    block1():
      -> (%x)
  return (%r)
""",
    ),
    "a constant with two outputs": (
        "IRC213: %r, %s = prim::Constant",
        """graph(%x : Tensor):
  %r, %s = prim::Constant[value=1]()
  return (%r)
""",
    ),
    "a group without a graph": (
        "IRC215: %r = prim::FusionGroup",
        """graph(%x : Tensor):
  %r : Tensor = prim::FusionGroup(%x)
  return (%r)
""",
    ),
    "a group with fewer inputs than its graph": (
        "IRC213: %r = prim::FusionGroup",
        """graph(%x : Tensor):
  %r : Tensor = prim::FusionGroup_0(%x)
  return (%r)
with prim::FusionGroup_0 = graph(%a : Tensor, %b : Tensor):
  return (%a)
""",
    ),
    "a loop without a condition": (
        "IRC213: %r = prim::Loop",
        """graph(%x : Tensor, %n : int):
  %r : Tensor = prim::Loop(%n)
    block0(%i : int):
      -> (%n)
  return (%r)
""",
    ),
    "a loop with a body that is given nothing": (
        "IRC213: %r = prim::Loop",
        """graph(%x : Tensor, %n : int):
  %r : Tensor = prim::Loop()
    block0():
      -> ()
  return (%r)
""",
    ),
    "an ONNX loop with more results than its body": (
        "IRC213: %r = onnx::Loop",
        """graph(%x : Tensor, %n : int):
  %r : Tensor = onnx::Loop(%n)
    block0(%i : int):
      -> (%n)
  return (%r)
""",
    ),
    "a scan of nothing": (
        "IRC215: %r = onnx::Scan",
        """graph(%x : Tensor, %n : int):
  %r : Tensor = onnx::Scan(%n)
    block0(%i : int):
      -> (%n)
  return (%r)
""",
    ),
    "a tuple taken apart that is not there": (
        "IRC213: %r = prim::TupleUnpack",
        """graph(%x : Tensor):
  %r : Tensor = prim::TupleUnpack()
  return (%r)
""",
    ),
    "a tuple of two taken apart into one": (
        "IRC213: %r = prim::TupleUnpack",
        """graph(%x : (Tensor, Tensor)):
  %r : Tensor = prim::TupleUnpack(%x)
  return (%r)
""",
    ),
    "a list that is a tensor": (
        "IRC214: %r = prim::ListConstruct",
        """graph(%x : Tensor):
  %r : Tensor = prim::ListConstruct(%x)
  return (%r)
""",
    ),
    "a call of nothing": (
        "IRC213: %r = prim::CallFunction",
        """graph(%x : Tensor):
  %r : Tensor = prim::CallFunction()
  return (%r)
""",
    ),
    "a call of what is not a function": (
        "IRC214: %r = prim::CallFunction",
        """graph(%x : Tensor):
  %r : Tensor = prim::CallFunction(%x)
  return (%r)
""",
    ),
    "an attribute set to nothing": (
        "IRC213: prim::SetAttr",
        """graph(%x : __torch__.M):
  %r : Tensor = prim::GetAttr[name="w"](%x)
   = prim::SetAttr[name="w"](%x)
  return (%r)
""",
    ),
    "an attribute without a name": (
        "IRC215: %r = prim::GetAttr",
        """graph(%x : __torch__.M):
  %r : Tensor = prim::GetAttr(%x)
  return (%r)
""",
    ),
    "a dictionary with a key and no value": (
        "IRC213: %r = prim::DictConstruct",
        """graph(%x : Tensor):
  %r : Dict(str, Tensor) = prim::DictConstruct(%x)
  return (%r)
""",
    ),
    "a fault in a function": (
        "IRC213: %r = onnx::Add",
        """graph(%x : Tensor):
  return (%x)

graph f(%x : Tensor):
  %r : Tensor = onnx::Add(%x)
  return (%r)
""",
    ),
}
"""What is wrong -> how the message begins, and the text."""

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
