"""Bulks of operators, options, failures and watches that raise."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.ir import Builder, DType, Graph, Node, types
from irc.ops import Operator, register
from irc.runtime.execution import Counters, Observer
from irc.runtime.kernels.registry import kernel
from irc.runtime.model import CompiledModel, Options
from irc.runtime.plan import Lowerer
from tests.graphs import ir
from tests.runtime.helpers import f32, graph_of, observed_run

TENSOR = types.tensor(DType.FLOAT)


def chain(operators: int) -> Graph:
    graph = Graph()
    value = graph.add_input(types.tensor(DType.FLOAT, (4,)), "x")
    b = Builder(graph)
    for i in range(operators):
        value = b.op(f"onnx::{('Neg', 'Relu', 'Exp')[i % 3]}", value, type=TENSOR)
    graph.set_outputs([value])
    return graph


def counted(graph: Graph, *inputs: Any, **options: Any) -> Counters:
    model = CompiledModel(graph, options=Options(**options))
    model.run({i.name: x for i, x in zip(model.inputs, inputs, strict=True)})
    return model.counters


# -- in order -------------------------------------------------------------------


CONTROL = ir("""
    c: Bool(); m: Long(); x: Float(2) -> z
    a: Float(2) = Neg(x); b: Float(2) = Abs(a); d: Float(2) = prim.If(c)
    with block(): t: Float(2) = Exp(b); u: Float(2) = Neg(t); yield u
    with block(): yield a
    y: Float(2) = Loop(m, True, d)
    with block(i=Long(), go=Bool(), v=Float(2)): w: Float(2) = Neg(v); yield go, w
    z: Float(2) = Relu(y)
""")


def test_control_flow_ends_units():
    counters = counted(graph_of(CONTROL), np.array(True), np.array(3), f32(1, 2))
    # Neg, Abs | If: its block | Loop: three iterations | Relu
    assert counters.units == 1 + 1 + 1 + 1 + 3 + 1
    assert counted(graph_of(CONTROL), np.array(False), np.array(0), f32(1, 2)).units == 4


@pytest.mark.parametrize("value", [0, -1, 1.5, "2", True, 10_000_000])
def test_options_are_checked(value):
    with pytest.raises(Error, match=r"^IRC419: .*threads must be a positive integer"):
        Options(threads=value)
    model, feeds = CompiledModel(chain(3)), {"x": f32(1, 2, 3, 4)}
    for run in (model.run, model.profile, irc.Session(model, {"x": model.outputs[0].name}).run):
        with pytest.raises(Error, match="IRC419"):
            run(feeds, threads=value)
    with pytest.raises(Error, match="IRC419"):
        CompiledModel(chain(3), options=value)


def test_numbers_of_options_may_be_numpys():
    options = Options(threads=np.uint8(2))  # type: ignore[arg-type]
    assert options == Options(2) and type(options.threads) is int
    model = CompiledModel(chain(3))
    assert model.run({"x": f32(1, 2, 3, 4)}, threads=np.int64(2)).keys() == {o.name for o in model.outputs}  # type: ignore[arg-type]


CALLED: list[Any] = []
"""What ``test.bulk::Spy`` was called with."""


@pytest.fixture
def failing_and_spying() -> None:
    register(*(Operator(f"test.bulk::{name}", "(Tensor x) -> Tensor") for name in ("Fail", "Spy")))

    @kernel("test.bulk::Fail")
    def fail(node: Node) -> Callable[..., Any]:
        def run(x: Any) -> Any:
            raise ValueError("it fails")

        return run

    @kernel("test.bulk::Spy")
    def spy(node: Node) -> Callable[..., Any]:
        def run(x: Any) -> Any:
            CALLED.append(x)
            return f32(0)

        return run

    CALLED.clear()


FAILING = """%a : Tensor = onnx::Neg(%x)
      %f : Tensor = test.bulk::Fail(%a)
      %s : Tensor = test.bulk::Spy(%f)"""

IN_ORDER = f"""
graph(%x : Tensor):
      {FAILING}
  return (%s)
"""

IN_A_LOOP = f"""
graph(%x : Tensor):
  %n : int = prim::Constant[value=3]()
  %t : bool = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %p : Tensor):
      {FAILING}
      -> (%t, %s)
  return (%y)
"""


@pytest.mark.usefixtures("failing_and_spying")
@pytest.mark.parametrize("observer", [None, Observer()], ids=["alone", "observed"])
@pytest.mark.parametrize("text", [IN_ORDER, IN_A_LOOP], ids=["in order", "in a loop"])
def test_nothing_behind_a_failure_in_the_same_bulk_runs(text: str, observer: Observer | None):
    with pytest.raises(Error, match="it fails") as caught:
        Lowerer(graph_of(text)).plan.run([np.eye(2, dtype=np.float32)], observed_run(observer))
    assert caught.value.where == "test.bulk::Fail '%f'"
    assert CALLED == []
