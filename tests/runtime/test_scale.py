"""The work of making a model runnable is linear in its size: lines executed are counted, not seconds."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import irc
from irc.alias import analyze
from irc.ir import Graph, parse_graph, parse_module
from irc.runtime.lowering import Lowering
from irc.runtime.plan import lower
from irc.runtime.report import peak_bytes
from tests.alias.test_scale import lines
from tests.passes.test_growth import chain_of_functions

FEW, MANY = 50, 300


@pytest.mark.parametrize("kind", ["onnx::Sum", "onnx::Max", "onnx::SequenceConstruct"])
def test_of_a_node_with_many_operands_none_is_compared_with_each_other(kind: str) -> None:
    def count(n: int) -> int:
        graph = operands(kind, n)
        return lines(lambda: irc.compile(graph, passes="none"))

    assert_linear(count)


def test_memory_of_many_inputs_is_counted_once_not_for_each_value_that_it_may_be() -> None:
    def count(n: int) -> int:
        graph = operands("onnx::Sum", n)
        db = analyze(graph)
        assert peak_bytes(graph, db) == (2 * n + 1) * 8
        return lines(lambda: peak_bytes(graph, db))

    assert_linear(count)


def test_of_functions_in_a_chain_each_is_analysed_once_not_for_each_that_leads_to_it() -> None:
    """They write, so they are not inlined; each is lowered by itself."""

    def count(n: int) -> int:
        main = parse_module(chain_of_functions(n)).main
        return lines(lambda: lower(main))

    assert_linear(count)


def test_names_of_outputs_that_are_one_value_are_not_all_tried_for_each(tmp_path: Path) -> None:
    def count(n: int) -> int:
        returned = ", ".join(["%y"] * n)
        model = irc.compile(
            parse_graph(f"graph(%x : Float(2)):\n  %y : Float(2) = onnx::Neg(%x)\n  return ({returned})\n")
        )
        return lines(lambda: irc.export(model, tmp_path / "m.onnx"))

    assert_linear(count)


GROUPS = {
    "chain": ["  %v{next} : Float(2) = onnx::Neg(%v{i})"],
    "inputs": ["  %v{next} : Float(2) = onnx::Neg(%x{i})"],
    "of other shapes": ["  %v{next} : Float(2, 2) = onnx::Add(%x{i}, %y)"],
    "read again": ["  %v{next} : Float(2) = onnx::Neg(%x{i})", "  %w{next} : Float(2) = onnx::Add(%x{i}, %v{next})"],
}
"""What is in a large group, for each of its inputs line after line; all results leave it."""


@pytest.mark.parametrize("body", GROUPS)
def test_in_large_groups_no_operator_is_compared_with_each_other(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    class Slot(int):
        """A slot that counts how often it is compared."""

        __hash__ = int.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return int(self) == other

    new_slot = Lowering._new_slot
    monkeypatch.setattr(Lowering, "_new_slot", lambda self, value, region: Slot(new_slot(self, value, region)))

    def count(n: int) -> int:
        nonlocal compared
        compared = 0
        rest = [line.format(i=i, next=i + 1) for line in GROUPS[body] for i in range(n)]
        made = [line.partition(" =")[0].strip() for line in rest]
        names = [value.split()[0] for value in made]
        given = ", ".join(["%v0 : Float(2)", "%y : Float(2, 2)", *(f"%x{i} : Float(2)" for i in range(n))])
        text = [
            f"graph({', '.join(f'%p{i} : Float(2)' for i in range(n))}, %y : Float(2, 2)):",
            *(f"  %x{i} : Float(2) = onnx::Neg(%p{i})" for i in range(n)),
            f"  {', '.join(made)} = prim::FusionGroup_0(%x0, %y, {', '.join(f'%x{i}' for i in range(n))})",
            *(f"  %r{i} : {value.split(' : ')[1]} = onnx::Exp({names[i]})" for i, value in enumerate(made)),
            f"  return ({', '.join(f'%r{i}' for i in range(len(made)))})",
            f"with prim::FusionGroup_0 = graph({given}):",
            *rest,
            f"  return ({', '.join(names)})\n",
        ]
        graph = parse_graph("\n".join(text))
        feeds = {f"p{i}": np.ones(2, np.float32) for i in range(n)} | {"y": np.ones((2, 2), np.float32)}

        def action() -> None:
            model = irc.compile(graph, passes="none", backend="numpy")
            model.run(feeds)
            model.run(feeds)  # which plans memory

        return lines(action) + compared

    assert_linear(count)


def assert_linear(count: Callable[[int], int]) -> None:
    count(FEW)  # what is done once a process is done then
    assert count(MANY) <= MANY / FEW * count(FEW)


def operands(kind: str, n: int) -> Graph:
    """n inputs, a result of each, and one of ``kind`` of all of those; the inputs live on."""
    count = range(n)
    inputs = ", ".join(f"%x{i}" for i in count)
    result = "Float(2)[]" if kind == "onnx::SequenceConstruct" else "Float(2)"
    head = ", ".join(f"%x{i} : Float(2)" for i in count)
    body = [f"  %r{i} : Float(2) = onnx::Neg(%x{i})" for i in count]
    last = f"  %y : {result} = {kind}({', '.join(f'%r{i}' for i in count)})"
    return parse_graph("\n".join([f"graph({head}):", *body, last, f"  return (%y, {inputs})\n"]))
