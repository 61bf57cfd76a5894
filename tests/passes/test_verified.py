"""What a pipeline leaves is verified, and the pass that broke it is named."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.ir import DType, Graph, Module, TensorType, parse_graph, parse_module
from irc.passes import Instrument, Pass, PassContext, PassManager, Repeat, create
from irc.passes.base import run_pass
from irc.passes.instruments import VerifyEach
from irc.passes.rewriter import Rewriter
from irc.passes.shapes import contradiction
from irc.passes.verified import run_verified
from tests.effort import Spy
from tests.graphs import ir, typed_ir

TEXT = ir("""
    x: Float(2); c: Bool() -> y
    f: Function = prim.Constant(name="f"); a: Float(2) = Neg(x); b: Float(2) = Exp(a); d: Float(2) = prim.If(c)
    with block(): i: Float(2) = Sin(b); j: Float(2) = Cos(i); yield j
    with block(): yield b
    y: Float(2) = prim.CallFunction(f, d)

    f | p: Float(2) -> r
    q: Float(2) = Tanh(p); r: Float(2) = Abs(q)
""")


def custom(action: Callable[[Graph, PassContext], bool], label: str = "") -> Pass:
    """A pass that does what it is told."""

    @dataclass(frozen=True)
    class Custom:
        name: ClassVar[str] = "custom"
        label: str = ""

        def run(self, graph: Graph, ctx: PassContext) -> bool:
            return action(graph, ctx)

    return Custom(label)


def late(kind: str) -> Callable[[Graph, PassContext], bool]:
    """Moves the first node of a kind behind a user of its result."""

    def action(graph: Graph, ctx: PassContext) -> bool:
        node = next((node for node in graph.walk() if node.kind == kind), None)
        if node is None:
            return False
        user = next(user for user in node.output.users if user.block is node.block)
        if user.is_before(node):
            return False
        node.move_after(user)
        return True

    return action


def failure(*passes: Pass | Repeat | str, instruments: list[Instrument | str] | None = None) -> Error:
    with pytest.raises(Error) as caught:
        irc.compile(parse_module(TEXT), passes, instruments=instruments or [])
    return caught.value


@pytest.mark.parametrize("kind", ["onnx::Neg", "onnx::Sin", "onnx::Tanh"])
def test_the_pass_is_named_wherever_it_breaks_the_graph(kind: str) -> None:
    error = failure("cse", custom(late(kind), "one"), "dce")
    assert error.code == "IRC212" and error.message.startswith("after pass custom{label=one}: ")


def test_so_is_one_of_irc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its result is verified at the end only; then all is done again."""
    monkeypatch.setattr(type(create("cse")), "run", lambda self, graph, ctx: late("onnx::Neg")(graph, ctx))
    error = failure("dce", "cse", "shape-inference")
    assert error.code == "IRC212" and error.message.startswith("after pass cse: ")


def test_one_that_breaks_the_graph_once_only_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = iter([True])

    def run(self: object, graph: Graph, ctx: PassContext) -> bool:
        return next(broken, False) and late("onnx::Neg")(graph, ctx)

    monkeypatch.setattr(type(create("cse")), "run", run)
    error = failure("dce", "cse")
    assert error.code == "IRC212" and "pass" not in error.message


def test_the_round_of_a_group_is_told() -> None:
    def second_time(graph: Graph, ctx: PassContext) -> bool:
        if not graph.is_main:
            return False
        times = ctx.memory["times"] = ctx.memory.get("times", 0) + 1
        if times == 1:
            graph.value("a").node.name = "seen"  # type: ignore[union-attr]
            return True
        return late("onnx::Neg")(graph, ctx)

    def rename(graph: Graph, ctx: PassContext) -> bool:
        node = graph.value("b").node if graph.is_main else None
        if node is None or node.name or not ctx.memory.get("times"):
            return False
        node.name = "seen"
        return True

    error = failure(Repeat((custom(second_time, "a"), custom(rename, "b")), 4))
    assert error.message.startswith("after pass custom{label=a} (run 2): ")


def test_a_function_broken_by_a_pass_on_the_main_graph_is_found() -> None:
    def action(graph: Graph, ctx: PassContext) -> bool:
        assert ctx.module is not None
        return graph.is_main and late("onnx::Tanh")(ctx.module.graphs["f"], ctx)

    error = failure(custom(action), "cse")
    assert error.code == "IRC212" and "pass custom" in error.message and "graph f" in error.message


def test_a_sound_pipeline_verifies_once(spy: Spy) -> None:
    verified = spy(Module, "verify")
    module = parse_module(TEXT)
    run_verified(PassManager("default"), module, lambda: pytest.fail("compiled again"))
    assert [call.args[0] for call in verified.call_args_list] == [module]


def test_verify_each_looks_at_functions_that_a_pass_on_another_graph_changes() -> None:
    def action(graph: Graph, ctx: PassContext) -> bool:
        assert ctx.module is not None
        return graph.is_main and late("onnx::Tanh")(ctx.module.graphs["f"], ctx)

    module = parse_module(TEXT)
    with pytest.raises(Error, match="after pass custom: "):
        PassManager([custom(action), "cse"], [VerifyEach()]).run(module)


# -- types -----------------------------------------------------------------------


def test_types_that_a_model_comes_with_are_nobody_elses_fault() -> None:
    text = "graph(%x : Float(2, 3)):\n  %y : Float(5) = onnx::Relu(%x)\n  return (%y)\n"
    module = parse_module(text)
    assert contradiction(module) is not None and str(module) == str(parse_module(text))
    irc.compile(module, [custom(lambda graph, ctx: False), "dce"])


def test_a_shape_that_a_pass_states_wrong_is_its_fault() -> None:
    def action(graph: Graph, ctx: PassContext) -> bool:
        if graph.is_main:
            graph.value("a").type = TensorType(DType.FLOAT, (3,))
        return graph.is_main

    error = failure(custom(action), "default")
    assert (
        error.code == "IRC214" and "after pass custom: %a is said to be Float(3), but it is Float(2)" in error.message
    )


LOOSE = ir("""
    x: Float(2, 3) -> y
    f: Function = prim.Constant(name="f"); y: Float(2, 3) = prim.CallFunction(f, x)

    f | p: Tensor -> s
    q = Softmax(p, since_version=13, axis=1); r = Cast(q, since_version=13, to=1); s = Add(q, r, since_version=14)
""")


@pytest.mark.parametrize(
    ("kind", "key", "number", "code"), [("Softmax", "axis", 5, "IRC310"), ("Cast", "to", 7, "IRC214")]
)
def test_functions_are_looked_at_on_what_they_are_called_with(kind: str, key: str, number: int, code: str) -> None:
    """By itself, the function says nothing of its types."""

    def action(graph: Graph, ctx: PassContext) -> bool:
        node = next((node for node in graph.nodes if node.kind == f"onnx::{kind}"), None)
        if node is not None:
            node.attributes[key] = number
        return node is not None

    assert contradiction(parse_module(LOOSE)) is None
    with pytest.raises(Error, match=code) as caught:
        irc.compile(parse_module(LOOSE), [custom(action)])
    assert "after pass custom: " in caught.value.message


def test_parameters_of_blocks_are_looked_at() -> None:
    text = typed_ir("""
        s: Float(3); x: Float(5, 3) -> y, r
        y, r = Scan(s, x, since_version=16, num_scan_inputs=1)
        with block(h=Float(3), e=Float(3)): k = Add(h, e, since_version=14); yield k, k
    """)

    def action(graph: Graph, ctx: PassContext) -> bool:
        graph.value("e").type = TensorType(DType.FLOAT, (2, 3))
        return True

    with pytest.raises(Error, match=r"IRC214: .*after pass custom: %e is said to be"):
        irc.compile(parse_module(text), [custom(action)])


@pytest.mark.parametrize("pipeline", ["", "default", "default,in-place,reorder", "remove-mutation"])
def test_what_irc_makes_is_no_contradiction(pipeline: str) -> None:
    module = parse_module(TEXT)
    PassManager(pipeline).run(module)
    assert contradiction(module) is None


# -- exceptions ------------------------------------------------------------------


def raising(error: BaseException) -> Pass:
    def action(graph: Graph, ctx: PassContext) -> bool:
        for node in graph.nodes:
            if node.kind == "onnx::Exp":
                raise error
        return False

    return custom(action)


@pytest.mark.parametrize("error", [KeyError("x"), RuntimeError("no"), SystemExit(0), RecursionError(), OSError("gone")])
def test_an_exception_is_located(error: BaseException) -> None:
    with pytest.raises(Error) as caught:
        PassManager([raising(error)]).run(parse_module(TEXT))
    assert caught.value.code == "IRC305" and caught.value.__cause__ is error
    assert caught.value.where.startswith(f"{__file__}:")
    assert type(error).__name__ in caught.value.message
    assert "(raised by pass custom, at %b = onnx::Exp)" in caught.value.message


@pytest.mark.parametrize("error", [MemoryError(), TimeoutError(), BrokenPipeError(), KeyboardInterrupt()])
def test_what_ends_the_program_stays_what_it_is(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        PassManager([raising(error)]).run(parse_module(TEXT))
    assert caught.value is error


def test_an_error_of_irc_keeps_its_code_and_gains_the_name() -> None:
    with pytest.raises(Error, match="IRC399") as caught:
        PassManager([raising(Error("IRC399", "no more:\n  a\n  b", "here"))]).run(parse_module(TEXT))
    assert caught.value.message == "no more (pass custom):\n  a\n  b"
    assert caught.value.where.startswith(f"{__file__}:") and caught.value.where.endswith(", here")


def test_a_mistake_in_a_pass_of_irc_is_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "graph(%x : Float(2)):\n  %a : Float(2) = onnx::Neg(%x)\n  return (%x)\n"
    monkeypatch.delattr(Rewriter, "erase")
    with pytest.raises(Error) as caught:
        PassManager("dce").run(parse_graph(text))
    assert caught.value.code == "IRC309" and "dce.py:" in caught.value.where
    assert "raised by pass dce" in caught.value.message


def test_what_evaluates_constants_is_located(monkeypatch: pytest.MonkeyPatch) -> None:
    class OddError(Exception):
        pass

    def evaluate(node: Any, arrays: Any) -> list[Any]:
        raise OddError("odd")

    text = ir("", "b: Float(2) = Neg([1.0, 2.0])", "b")
    with pytest.raises(Error) as caught:
        PassManager("constant-fold", evaluate=evaluate).run(parse_graph(text))
    assert caught.value.code == "IRC305" and caught.value.where.startswith(f"{__file__}:")
    assert "OddError: odd (raised by pass constant-fold, at %b = onnx::Neg)" in caught.value.message


def test_the_node_is_the_innermost_of_the_passes_own_frames() -> None:
    def rewrite(node: Any) -> None:
        np.zeros(3).reshape(node.kind)

    def action(graph: Graph, ctx: PassContext) -> bool:
        for found in graph.nodes:
            user = next(iter(found.output.users), None)
            if user is not None and user.kind == "onnx::Exp":
                rewrite(user)
        return False

    with pytest.raises(Error, match=r"at %b = onnx::Exp\)"):
        run_pass(custom(action), parse_module(TEXT).main, PassContext())
