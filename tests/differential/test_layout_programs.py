"""Random programs that look at strides, and write through views and copies, compute in irc what they do in PyTorch."""

import re
from typing import Any

import pytest
from hypothesis import assume, given, note

from irc.alias import analyze
from irc.ir import Builder, Graph, Tensor, constant_value
from irc.ir.types import TENSOR, TensorType
from irc.ops import resolve
from irc.runtime.lowering import runtime_constant
from tests.differential.helpers import Differ, run_both
from tests.effort import examples
from tests.programs.generator import Program, programs

FEATURES = ("torch", "torch views", "torch writes", "layouts", "layout writes", "numbers")

OVERLAPPING = "refer to a single memory location|is an overlapping"
"""What PyTorch says of writes into a tensor that overlaps itself, or an operand in part."""


def for_pytorch(program: Program) -> tuple[str, list[Any]]:
    """The text of ``program`` as PyTorch reads it, and what to give it: tensors that are constants, too."""
    graph = program.module.copy().main
    given: list[Any] = program.inputs()
    for node in list(graph.walk()):
        tensor = constant_value(node.output) if node.kind == "prim::Constant" else None
        if isinstance(tensor, Tensor):
            given.append(runtime_constant(tensor).copy())
            node.output.replace_all_uses_with(graph.add_input(node.output.type))
            node.erase()
        else:
            _give_defaults(graph, node)
    for i, value in enumerate(graph.outputs):
        value.name = f"o{i}"
    for value in graph.inputs:  # PyTorch has no words for names of sizes
        if isinstance(value.type, TensorType):
            value.type = TENSOR
    return str(graph), given


def _give_defaults(graph: Graph, node: Any) -> None:
    row = resolve(node) if node.kind.startswith("aten::") else None
    for argument in row.arguments[len(node.inputs) :] if row is not None else ():
        node.append_input(Builder.before(node).constant(argument.default))


def may_read_what_it_writes(graph: Graph) -> bool:
    """Whether a write may change in part what it reads, in memory that overlaps itself.

    PyTorch then gives what its loops happen to read; other parts it refuses (`OVERLAPPING`).
    """
    if not any(node.kind == "aten::as_strided" for node in graph.walk()):
        return False
    db = analyze(graph)
    writes = (node for node in graph.walk() if node.kind.endswith("_") and node.kind.startswith("aten::"))
    return any(db.may_alias(node.inputs[0], x) for node in writes for x in node.inputs[1:] if x is not node.inputs[0])


@pytest.mark.parametrize("passes", ["", "remove-mutation", "default,remove-mutation"])
def test_programs_see_the_layouts_that_they_see_in_pytorch(passes: str) -> None:
    @examples(50)
    @given(programs(FEATURES, size=24))
    def check(program: Program) -> None:
        assume(not may_read_what_it_writes(program.graph))
        text, arguments = for_pytorch(program)
        note(text)
        try:
            run_both(text, arguments, strides=not passes, passes=passes)
        except Differ as error:
            if not re.search(OVERLAPPING, str(error)):
                raise

    check()
