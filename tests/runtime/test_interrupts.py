"""What a signal handler raises ends a run, or a compilation, and is its caller's: of whatever class, unchanged."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irc
from irc.errors import Error, comes_from_outside
from irc.ir import parse_graph
from irc.runtime.kernels import registry
from tests.graphs import ir, typed_ir
from tests.runtime.helpers import f32, interrupted


class ClientGoneError(Exception):
    """As of a server, whose signal handler raises it."""


OPERATORS = typed_ir("""
    n: Long(); c: Bool(); x: Float(4, 4) -> both
    folded = Neg([1.0, 2.0, 3.0, 4.0]); one = Sigmoid(Add(MatMul(x, x), folded)); other = MatMul(one, x)
    chosen = prim.If(c)
    with block(): a = Softmax(other, axis=1); yield a
    with block(): yield other
    end = Loop(n, c, chosen)
    with block(i=Long(), go=Bool(), held=Float(4, 4)): next = MatMul(held, x); yield go, next
    both = Concat(one, end, axis=0)
""")

SQUARE = np.eye(4, dtype=np.float32) / 2


def assert_left_as_it_is(
    error: Exception, action: Callable[[], Any], files: str, check: Callable[[], None], step: int = 1
) -> None:
    """Interrupt ``action`` before each ``step``-th line of ``files``: it raises ``error`` itself; then ``check``."""

    def handler() -> None:
        raise error

    for at in range(1, 100_000, step):
        raised, stopped = None, True
        try:
            stopped = interrupted(action, at, files, handler)
        except Exception as caught:
            raised = caught
        assert raised is (error if stopped else None), f"before line {at}"
        if not stopped:
            break
        check()
    assert 3 * step < at < 90_000


@pytest.mark.parametrize("files", ["runtime/execution.py", "runtime/kernels", "runtime/control_flow.py"])
@pytest.mark.parametrize("error", [ClientGoneError("bye"), TimeoutError("late")], ids=["own", "built in"])
def test_a_run(error: Exception, files: str) -> None:
    model = irc.compile(parse_graph(OPERATORS))
    feeds = {"n": np.int64(2), "c": np.array(True), "x": SQUARE}
    expected = model.run(feeds)["both"]

    def check() -> None:
        np.testing.assert_array_equal(model.run(feeds)["both"], expected)

    assert any(node.kind.startswith("prim::FusionGroup") for node in model.graph.nodes)
    assert_left_as_it_is(error, lambda: model.run(feeds), files, check)


@pytest.mark.parametrize("files", ["irc/passes", "runtime/binding.py", "runtime/kernels", "runtime/execution.py"])
def test_compiling(files: str) -> None:
    def check() -> None:
        pass

    action = lambda: irc.compile(parse_graph(OPERATORS))  # noqa: E731
    assert_left_as_it_is(ClientGoneError("bye"), action, files, check, 61 if files == "irc/passes" else 5)


def test_a_session_goes_on() -> None:
    text = "graph(%x : Float(n), %past_0 : Float(p)):\n  %present_0 : Float(*) = onnx::Concat[axis=0](%past_0, %x)\n"
    session = irc.Session(irc.compile(parse_graph(f"{text}  return (%present_0)")))
    session.run({"x": f32(1)})
    length = 1

    def check() -> None:
        nonlocal length
        length += 1
        np.testing.assert_array_equal(session.run({"x": f32(1)})["present_0"], np.ones(length))

    assert_left_as_it_is(ClientGoneError("bye"), lambda: session.run({"x": f32(1)}), "runtime/growable.py", check)


@pytest.mark.usefixtures("own_registries")
@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize("fails_at", ["binding", "running"])
def test_kernels_of_others_may_raise_what_they_like(fails_at: str, passes: str) -> None:
    """A class of their own tells about the operator, and so does the error."""

    def other(node: Any) -> Callable[..., Any]:
        def run(x: np.ndarray) -> np.ndarray:
            raise ClientGoneError("no answer")

        return run(f32(1)) if fails_at == "binding" else run

    registry.kernel("test::other")(other)
    text = ir("""
        c: Bool(); x: Float(1) -> y
        y: Float(1) = prim.If(c)
        with block(): a: Float(1) = test.other(x); yield a
        with block(): yield x
    """)
    with pytest.raises(Error, match="no answer") as caught:
        irc.compile(parse_graph(text), passes).run({"c": np.array(True), "x": f32(1)})
    assert caught.value.code == ("IRC324" if fails_at == "binding" else "IRC401")
    assert caught.value.where == "test::other '%a'"
    assert isinstance(caught.value.__cause__, ClientGoneError)


@pytest.mark.parametrize(
    "error",
    [
        ValueError(),
        MemoryError(),
        OSError(),
        np.exceptions.AxisError(1, 1),
        np.linalg.LinAlgError(),
        Error("IRC401", ""),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_kernels_raise_tells_about_operators(error: Exception) -> None:
    assert not comes_from_outside(error)
