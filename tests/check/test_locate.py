"""A failed check names the pass that made the model wrong, and the first value that it changed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.ir import Graph, Tensor, parse_module
from irc.passes import Pass, PassContext, PassManager, Repeat, print_pass
from irc.tools.check import Tolerance
from irc.tools.check.models import Wanted, blame, first_wrong
from tests.check.test_wrong_passes import FAULTS, Wrong
from tests.graphs import ir, typed_ir

TEXT = ir("""
    x: Float(2, 3); c: Bool() -> y
    f: Function = prim.Constant(name="f"); a: Float(2, 3) = Sigmoid(x); b: Float(2, 3) = prim.If(c)
    with block(): i: Float(2, 3) = Sin(a); yield i
    with block(): j: Float(2, 3) = Cos(a); yield j
    z: Float(2, 3) = prim.CallFunction(f, b); y: Float(2, 3) = Exp(z)

    f | p: Float(2, 3) -> q
    q: Float(2, 3) = Tanh(p)
""")


@dataclass(frozen=True)
class Swap:
    """Makes every operator of one kind one of another."""

    name: ClassVar[str] = "swap"
    old: str = ""
    new: str = ""

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        nodes = [node for node in graph.walk() if node.kind == self.old]
        for node in nodes:
            node.kind = self.new
        return bool(nodes)


@dataclass(frozen=True)
class Named:
    """Gives a name to the first node that has none."""

    name: ClassVar[str] = "named"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        node = next((node for node in graph.nodes if not node.name), None)
        if node is not None:
            node.name = "named"
        return node is not None


def custom(action: Callable[[Graph, PassContext], bool]) -> Pass:
    @dataclass(frozen=True)
    class Custom:
        name: ClassVar[str] = "custom"

        def run(self, graph: Graph, ctx: PassContext) -> bool:
            return action(graph, ctx)

    return Custom()


def failure(*passes: Pass | Repeat | str) -> str:
    with pytest.raises(Error) as caught:
        irc.compile(parse_module(TEXT), passes, check=True)
    assert caught.value.code == "IRC330"
    return caught.value.message


@pytest.mark.parametrize("then", ["", "default"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_pass_is_named(fault: str, then: str) -> None:
    proto, _, _ = FAULTS[fault]
    with pytest.raises(Error) as caught:
        irc.compile(proto, ["cse", Wrong(fault), *filter(None, [then])], check=True)
    assert f"pass {print_pass(Wrong(fault))}" in caught.value.message


@pytest.mark.parametrize("before", ["", "default", "cse,dce"])
@pytest.mark.parametrize(("old", "new"), [("Sigmoid", "Tanh"), ("Sin", "Neg"), ("Cos", "Neg"), ("Exp", "Abs")])
def test_so_is_one_in_a_branch(old: str, new: str, before: str) -> None:
    swap = Swap(f"onnx::{old}", f"onnx::{new}")
    unfused = "inline,canonicalize,cse" if before == "default" else before
    said = failure(unfused, swap, "dce,fuse,dce")
    assert f"it is right before pass {print_pass(swap)}, and wrong after it" in said


def test_a_pass_that_changes_a_function_is_named() -> None:
    swap = Swap("onnx::Tanh", "onnx::Neg")
    said = failure("cse", swap, "default")
    assert f"before pass {print_pass(swap)}, and wrong after it" in said


def test_so_is_the_round_of_a_group() -> None:
    """The first round gives a node a name; the second is wrong."""

    def action(graph: Graph, ctx: PassContext) -> bool:
        times = ctx.memory["times"] = ctx.memory.get("times", 0) + graph.is_main
        return times == 2 and Swap("onnx::Exp", "onnx::Abs").run(graph, ctx)

    said = failure(Repeat((custom(action), Named()), 3), "dce")
    assert "it is right before pass custom (run 2), and wrong after it" in said


def test_a_pass_after_which_the_model_does_not_run_is_named() -> None:
    """Without passes it runs on the same inputs: so these are not to blame."""
    text = typed_ir("x: Float(5, 3)", "i: Long(2) = prim.Constant(value=tensor([0, 4])); y = Gather(x, i, axis=0)", "y")

    def action(graph: Graph, ctx: PassContext) -> bool:
        node = graph.value("i").node
        assert node is not None
        node.attributes["value"] = Tensor.of(np.array([0, 5]))
        return True

    with pytest.raises(Error) as caught:
        irc.compile(parse_module(text), ["dce", custom(action), "default"], check=True)
    assert caught.value.code == "IRC423"
    assert "it is right before pass custom, and wrong after it" in caught.value.message


def test_a_pass_that_is_wrong_only_once_is_not_blamed() -> None:
    done: list[int] = []

    def action(graph: Graph, ctx: PassContext) -> bool:
        if not graph.is_main or done:
            return False
        done.append(1)
        return Swap("onnx::Exp", "onnx::Abs").run(graph, ctx)

    assert "compiled again, it is right: a pass or an instrument does not do the same each time" in failure(
        custom(action), "default"
    )


def test_what_is_wrong_without_passes_is_no_fault_of_a_pass() -> None:
    x = np.ones((2, 3), np.float32)
    wanted = Wanted({"x": x, "c": np.array(True)}, {"y": x}, Tolerance())
    assert blame(wanted, parse_module(TEXT), PassManager("default")) == "it is so without any pass, too"


def test_a_pipeline_that_does_not_run_again_is_told() -> None:
    def action(graph: Graph, ctx: PassContext) -> bool:
        raise Error("IRC399", "not again")

    wanted = Wanted({}, {}, Tolerance())
    said = blame(wanted, parse_module(TEXT), PassManager([custom(action)]))
    assert "is not known, as compiling it again fails: IRC399: " in said


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64])
def test_the_first_wrong_number_is_found_in_few_steps(count: int) -> None:
    for first in range(1, count + 1):
        asked: list[int] = []

        def is_wrong(number: int, first: int = first, asked: list[int] = asked) -> bool:
            asked.append(number)
            return number >= first

        assert first_wrong(count, is_wrong) == first
        assert len(asked) <= count.bit_length()
