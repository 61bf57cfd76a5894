"""Graphs that PyTorch's analysis does not survive, and irc's answers about them."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys

import pytest

from irc.alias import analyze
from irc.ir import Builder, Graph, parse_graph, types
from irc.ir.bulk import no_collection
from tests.differential.both import Both

RECURSIVE_TYPE = """
import torch
module = torch.jit.script(torch.nn.Identity())
of_type = module._c._type()
module._c._register_attribute("others", torch._C.ListType(of_type), [])
graph = torch._C.Graph()
graph.addInput().setType(of_type)
print("made", flush=True)
graph.alias_db()
"""


def dies(program: str, text: str = "") -> bool:
    """Whether ``program`` ends by a violation of memory, on a stack of 8 MiB, after it has said ``made``."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        input=text,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 8 << 20)),
    )
    assert done.stdout == "made\n"
    return done.returncode == -signal.SIGSEGV


def test_types_that_contain_themselves() -> None:
    assert dies(RECURSIVE_TYPE)
    graph = parse_graph("graph(%a : __torch__.A, %b : __torch__.A[], %c : Tensor):\n  return (%c)\n")
    for first in "abc":
        db = analyze(graph)
        assert db.may_contain_alias(graph.value(first), graph.value("a"))
        assert db.may_contain_alias(graph.value("b"), graph.value("c"))


def test_an_if_of_any_over_two_numbers() -> None:
    both = Both("""
graph(%c : bool):
  %z : int = prim::Constant[value=0]()
  %a : Any = prim::If(%c)
    block0():
      -> (%z)
    block1():
      -> (%z)
  return (%a)
""")
    assert not both.db.may_contain_alias(both["a"], both["a"])
    with pytest.raises(IndexError):
        both.they_contain(both["a"], both["a"])


DEEP = 150_000
ANALYSE = """
import sys, torch
graph = torch._C.parse_ir(sys.stdin.read())
print("made", flush=True)
graph.alias_db()
"""


def test_deep_chains() -> None:
    """In-place operators one after the other, the last into a list: PyTorch's memo is recursive."""
    graph = Graph()
    b = Builder(graph)
    first = value = b.op("aten::relu", graph.add_input(types.TENSOR))
    with no_collection():
        for _ in range(DEEP):
            value = b.op("aten::relu_", value)
    held = b.op("prim::ListConstruct", value, type=types.ListType(types.TENSOR))
    graph.set_outputs([value])
    db = analyze(graph)
    assert db.must_alias(first, value) and db.has_writers(first) and db.may_contain_alias(held, first)
    assert dies(ANALYSE, str(graph))
