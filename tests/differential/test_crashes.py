"""Graphs that PyTorch's analysis does not survive, and irc's answers about them."""

import signal
import subprocess
import sys

import pytest

from irc.alias import analyze
from irc.ir import Builder, Graph, parse_graph, types
from irc.ir.graph import gc_paused
from tests.differential.both import Both
from tests.graphs import ir

RECURSIVE_TYPE = """
import torch
module = torch.jit.script(torch.nn.Identity())
of_type = module._c._type()
module._c._register_attribute("others", torch._C.ListType(of_type), [])
graph = torch._C.Graph()
graph.addInput().setType(of_type)
"""


ON_SMALL_STACK = """
import threading
print("made", flush=True)
threading.stack_size(8 << 20)
thread = threading.Thread(target=graph.alias_db)
thread.start()
thread.join()
"""


def dies(make: str, text: str = "") -> bool:
    """Whether PyTorch's analysis of the ``graph`` that a program makes (of ``text``) ends by a violation of memory.

    It has a stack of 8 MiB, as the main thread has on Linux.
    """
    program = [sys.executable, "-W", "ignore", "-c", make + ON_SMALL_STACK]
    done = subprocess.run(program, input=text, stdout=subprocess.PIPE, text=True, check=False)
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
    both = Both(ir("c: bool", "z: int = prim.Constant(value=0); a: Any = z if c else z", "a"))
    assert not both.db.may_contain_alias(both["a"], both["a"])
    with pytest.raises(IndexError):
        both.they_contain(both["a"], both["a"])


DEEP = 150_000
READ = """
import sys, torch
graph = torch._C.parse_ir(sys.stdin.read())
"""


def test_deep_chains() -> None:
    """In-place operators one after the other, the last into a list: PyTorch's memo is recursive."""
    graph = Graph()
    b = Builder(graph)
    first = value = b.op("aten::relu", graph.add_input(types.TENSOR))
    with gc_paused():
        for _ in range(DEEP):
            value = b.op("aten::relu_", value)
    held = b.op("prim::ListConstruct", value, type=types.ListType(types.TENSOR))
    graph.set_outputs([value])
    db = analyze(graph)
    assert db.must_alias(first, value) and db.has_writers(first) and db.may_contain_alias(held, first)
    assert dies(READ, str(graph))
    assert not dies(READ, "graph(%x : Tensor):\n  %y : Tensor = aten::relu_(%x)\n  return (%y)\n")
