"""Random programs of branches, loops, groups and calls against an interpreter that drops and overwrites nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from irc.ir import Block, Builder, DType, Graph, Module, Tensor, Value, types
from irc.runtime import kernels
from irc.runtime.execution import Counters
from irc.runtime.lowering import runtime_constant
from irc.runtime.plan import lower

TENSOR = types.tensor(DType.FLOAT)
LONG = types.tensor(DType.INT64, ())
BOOL = types.tensor(DType.BOOL, ())

UNARY = ["onnx::Neg", "onnx::Relu", "onnx::Abs", "onnx::Identity", "onnx::Transpose"]
BINARY = ["onnx::Add", "onnx::Sub", "onnx::Max", "onnx::Min"]


class Generator:
    """Draws a module; every value is a [2, 2] float tensor, so that anything fits anywhere."""

    def __init__(self, data: st.DataObject) -> None:
        self.draw = data.draw
        self.module = Module()
        self.budget = 60
        callee = self.module.add_graph("callee")
        self.body(callee.block, [callee.add_input(TENSOR, "p"), callee.add_input(TENSOR, "q")], depth=1)
        main = self.module.main
        self.body(main.block, [main.add_input(TENSOR, n) for n in "xyz"] + [main.add_input(LONG, "n")], depth=0)

    def pick(self, values: list[Value]) -> Value:
        return self.draw(st.sampled_from([v for v in values[-8:] + values[:3] if v.type.dtype is DType.FLOAT]))

    def body(self, block: Block, visible: list[Value], depth: int, returns: int = 2) -> None:
        """Fill ``block``; ``visible`` grows by what it defines."""
        b = Builder.at_end(block)
        for _ in range(self.draw(st.integers(0 if depth < 3 else 3, 6))):
            self.budget -= 1
            if self.budget < 0:
                break
            self.node(b, visible, depth)
        block.set_returns([*block.returns, *(self.pick(visible) for _ in range(returns))])

    def node(self, b: Builder, visible: list[Value], depth: int) -> None:
        a, c = self.pick(visible), self.pick(visible)
        choice = self.draw(st.sampled_from("ubbckiillggg" if depth < 3 else "uuubbk"))
        if choice == "u":
            visible.append(b.op(self.draw(st.sampled_from(UNARY)), a, type=TENSOR))
        elif choice == "b":
            visible.append(b.op(self.draw(st.sampled_from(BINARY)), a, c, type=TENSOR))
        elif choice == "k":
            visible.append(b.constant(Tensor.of(np.float32([[1, 2], [-3, self.budget]])), type=TENSOR))
        elif choice == "c" and depth == 0:
            function = b.op("prim::Constant", type=types.FUNCTION, attributes={"name": "callee"})
            visible.extend(b.node("prim::CallFunction", [function, a, c], [TENSOR, TENSOR]).outputs)
        elif choice == "i":
            zero = b.constant(Tensor.of(np.float32(0)))
            total = b.op("onnx::ReduceSum", a, type=TENSOR, attributes={"keepdims": 0})
            node = b.node("prim::If", [b.op("onnx::Less", total, zero, type=BOOL)], [TENSOR, TENSOR])
            for _ in range(2):
                self.body(node.add_block(), list(visible), depth + 1)
            visible.extend(node.outputs)
        elif choice == "l":
            trips = b.constant(Tensor.of(np.int64(self.draw(st.integers(0, 3)))))
            node = b.node("onnx::Loop", [trips, b.constant(), a, c], [TENSOR, TENSOR, TENSOR])
            block = node.add_block()
            trip, go_on = block.add_param(LONG), block.add_param(BOOL)
            assert trip is not go_on
            block.set_returns([go_on])
            self.body(block, [*visible, block.add_param(TENSOR), block.add_param(TENSOR)], depth + 1, returns=3)
            block.returns[3].type = types.tensor(DType.FLOAT, (2, 2))  # for no trips
            visible.extend(node.outputs[:2])
            axes = b.constant(Tensor.of(np.array([0])))
            visible.append(b.op("onnx::ReduceSum", node.outputs[2], axes, type=TENSOR, attributes={"keepdims": 0}))
        elif choice == "g":
            inner = Graph("group", b.graph.weights)
            params = [inner.add_input(TENSOR), inner.add_input(TENSOR)]
            self.body(inner.block, params, depth=3)
            visible.extend(
                b.node("prim::FusionGroup", [a, c], [TENSOR, TENSOR], attributes={"Subgraph": inner}).outputs
            )


def naive(block: Block, arguments: list[Any], env: dict[Value, Any], module: Module) -> list[Any]:
    env |= dict(zip(block.params, arguments))
    for node in block.nodes:
        inputs = [env.get(v) for v in node.inputs]
        if node.kind == "prim::Constant":
            results = [runtime_constant(node.attributes.get("value"))]
        elif node.kind == "prim::If":
            results = naive(node.blocks[not inputs[0]], [], dict(env), module)
        elif node.kind == "onnx::Loop":
            trips, _, *carried = inputs
            rows = []
            for i in range(int(trips)):
                _, *carried, row = naive(node.blocks[0], [np.int64(i), np.True_, *carried], dict(env), module)
                rows.append(row)
            results = [*carried, np.stack(rows) if rows else np.zeros((0, 2, 2), np.float32)]
        elif node.kind == "prim::CallFunction":
            results = naive(module.graphs["callee"].block, inputs[1:], {}, module)
        elif node.kind == "prim::FusionGroup":
            results = naive(node.attributes["Subgraph"].block, inputs, {}, module)
        else:
            results = [kernels.bind(node)(*inputs)]
        env |= dict(zip(node.outputs, results, strict=True))
    return [env[v] for v in block.returns]


@settings(max_examples=150)
@given(st.data())
def test_plans_compute_what_the_graph_says(data):
    module = Generator(data).module
    inputs = [np.float32([[1, -2], [3, 4]]), np.float32([[0, 5], [-1, 2]]), np.float32([[-6, 1], [1, 1]]), np.array(2)]
    for array in inputs:
        array.flags.writeable = False
    expected = naive(module.main.block, inputs, {}, module)
    plan = lower(module.main)
    for _ in range(2):  # nothing is left over from the first run
        counters = Counters()
        results = plan.run(inputs, counters)
        for got, want in zip(results, expected, strict=True):
            np.testing.assert_array_equal(got, want)
        assert counters.kernels >= counters.in_place


@settings(max_examples=50)
@given(st.data())
def test_frames_keep_nothing_but_results_and_constants(data):
    """Every slot is emptied after its last use, on every path that was taken."""
    module = Generator(data).module
    plan = lower(module.main)
    inputs = [np.ones((2, 2), np.float32) for _ in range(3)] + [np.array(2)]
    frames: list[list[Any]] = []
    template = plan._template

    class Template(list):
        def copy(self) -> list[Any]:
            frames.append(list(self))
            return frames[-1]

    plan._template = Template(template)
    plan.run(inputs)
    (frame,) = frames
    kept = {i for i in range(1, len(frame)) if frame[i] is not None and template[i] is None}
    unused_inputs = {i for i, v in zip(plan.code.params, module.main.inputs) if not v.has_uses}
    assert kept <= set(plan.code.returns) | unused_inputs
