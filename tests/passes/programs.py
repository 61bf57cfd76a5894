"""Random programs that run: views, in-place operators, branches, loops and lists over tensors of shape (2, 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from irc.ir import Block, Builder, DType, Graph, Module, Tensor, Value, types

TENSOR = types.tensor(DType.FLOAT, (2, 3))
FLIPPED = types.tensor(DType.FLOAT, (3, 2))
LIST = types.ListType(types.TENSOR)
SMALL = st.integers(-2, 2)

UNARY = ("onnx::Relu", "onnx::Neg", "onnx::Abs", "aten::neg", "aten::relu")
BINARY = ("onnx::Add", "onnx::Sub", "onnx::Max", "onnx::Min")


class Maker:
    """Draws nodes. ``scope`` holds the visible tensors, ``fixed`` those that may be constant memory."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.graph = Graph()
        self.builder = Builder(self.graph)
        self.scope: list[Value] = []
        self.lists: list[Value] = []
        self.bools: list[Value] = []
        self.fixed: set[Value] = set()
        self.depth = 0
        self.budget = 24

    def program(self, inputs: int, name: str = "main", functions: Sequence[tuple[Graph, list[bool]]] = ()) -> Graph:
        self.graph.name = name
        self.scope = [self.graph.add_input(TENSOR, f"x{i}") for i in range(inputs)]
        self.bools = [self.graph.add_input(types.tensor(DType.BOOL, ()), "q")]
        self.nodes(16, least=5)
        for function, fixed in functions:
            self.calls(function, fixed)
        count = self.draw(st.integers(0, 3))
        returned = list(dict.fromkeys([self.scope[-1], *(self.tensor() for _ in range(count))]))
        # A graph's outputs are nodes' results with names of their own.
        outputs = [self.op("onnx::Identity", v, name=f"out{i}", fixed=self.like(v)) for i, v in enumerate(returned)]
        self.graph.set_outputs(outputs)
        return self.graph

    def calls(self, function: Graph, fixed: list[bool]) -> None:
        """Call ``function`` twice, the second time on results of the first, and go on with what it returns."""
        for _ in range(2):
            target = self.op("prim::Constant", type=types.FUNCTION, attributes={"name": function.name})
            writable = st.sampled_from([v for v in self.scope if v not in self.fixed])  # the function may write
            arguments = [self.draw(writable), self.draw(writable), self.draw(st.sampled_from(self.bools))]
            node = self.builder.node("prim::CallFunction", [target, *arguments], [TENSOR] * len(fixed))
            self.scope += node.outputs
            self.fixed.update(v for v, f in zip(node.outputs, fixed) if f)
            self.nodes(4)

    def nodes(self, most: int, least: int = 0) -> None:
        kinds = [
            self.pointwise, self.pointwise, self.pointwise, self.view, self.in_place, self.in_place, self.constant,
            self.identity, self.repeat, self.new_list, self.append, self.item, self.cat, self.branch, self.loop,
            self.shape, self.random,
        ]  # fmt: skip
        for make in self.draw(st.lists(st.sampled_from(kinds), min_size=least, max_size=most)):
            if self.budget:
                self.budget -= 1
                make()

    # -- pieces

    def tensor(self) -> Value:
        return self.draw(st.sampled_from(self.scope))

    def op(self, kind: str, *inputs: Value, type: Any = TENSOR, fixed: bool = False, **more: Any) -> Value:
        value = self.builder.op(kind, *inputs, type=type, **more)
        if type == TENSOR:
            self.scope.append(value)
        if fixed:
            self.fixed.add(value)
        return value

    def like(self, value: Value) -> bool:
        return value in self.fixed

    def number(self, value: int) -> Value:
        return self.builder.constant(value)

    # -- one or a few nodes each

    def pointwise(self) -> None:
        if self.draw(st.booleans()):
            self.op(self.draw(st.sampled_from(UNARY)), self.tensor())
        else:
            self.op(self.draw(st.sampled_from(BINARY)), self.tensor(), self.tensor())

    def repeat(self) -> None:
        """A node like an earlier one, for cse to find."""
        earlier = [v.node for v in self.scope if v.node and v.node.kind in (*UNARY, *BINARY, "aten::t")]
        if earlier:
            node = self.draw(st.sampled_from(earlier))
            if all(v in self.scope for v in node.inputs):
                self.op(node.kind, *node.inputs)

    def view(self) -> None:
        x = self.tensor()
        flipped = self.op("aten::t", x, type=FLIPPED)
        self.op("aten::t", flipped, fixed=self.like(x))

    def identity(self) -> None:
        x = self.tensor()
        self.op("onnx::Identity", x, fixed=self.like(x))

    def constant(self) -> None:
        values = self.draw(st.lists(SMALL, min_size=6, max_size=6) | st.integers(-2, 2).map(lambda n: [n] * 6))
        tensor = Tensor.of(np.array(values, np.float32).reshape(2, 3))
        self.scope.append(self.builder.constant(tensor))
        self.fixed.add(self.scope[-1])

    def in_place(self) -> None:
        targets = [v for v in self.scope if v not in self.fixed]
        if targets:
            x = self.draw(st.sampled_from(targets))
            if self.draw(st.booleans()):
                self.op(self.draw(st.sampled_from(["aten::relu_", "aten::neg_"])), x)
            else:
                self.op("aten::add_", x, self.tensor())

    def shape(self) -> None:
        size = self.op("onnx::Shape", self.tensor(), type=types.tensor(DType.INT64, (2,)))
        total = self.op("onnx::ReduceSum", size, type=types.tensor(DType.INT64, ()), attributes={"keepdims": 0})
        number = self.op("onnx::Cast", total, type=types.tensor(DType.FLOAT, ()), attributes={"to": 1})
        self.op("onnx::Mul", self.tensor(), number)

    def random(self) -> None:
        self.op("onnx::RandomNormalLike", self.tensor(), attributes={"seed": float(self.draw(st.integers(0, 3)))})

    def new_list(self) -> None:
        items = [self.tensor() for _ in range(self.draw(st.integers(1, 3)))]
        self.lists.append(self.op("prim::ListConstruct", *items, type=LIST))
        if any(map(self.like, items)):
            self.fixed.add(self.lists[-1])

    def append(self) -> None:
        if self.lists and not self.depth:  # in a loop or branch, how long the list is would not be known
            target, x = self.draw(st.sampled_from(self.lists)), self.tensor()
            self.op("aten::append", target, x, type=LIST)
            if self.like(x):
                self.fixed.update(self.lists)

    def item(self) -> None:
        if self.lists:
            source = self.draw(st.sampled_from(self.lists))
            self.op("aten::__getitem__", source, self.number(0), fixed=self.like(source))

    def cat(self) -> None:
        if self.lists:
            joined = self.op("aten::cat", self.draw(st.sampled_from(self.lists)), self.number(0), type=types.TENSOR)
            self.op("aten::slice", joined, *map(self.number, (0, 0, 2)))

    def condition(self) -> Value:
        if self.draw(st.booleans()):
            return self.draw(st.sampled_from(self.bools))
        return self.builder.constant(Tensor.of(np.array(self.draw(st.booleans()))))

    def branch(self) -> None:
        node = self.builder.node("prim::If", [self.condition()])
        blocks = [self.block(node.add_block()) for _ in range(2)]
        count = self.draw(st.integers(1, 2))
        returns = [[self.draw(st.sampled_from(scope)) for _ in range(count)] for _, scope in blocks]
        for (block, _), values in zip(blocks, returns):
            block.set_returns(values)
        outputs = node.add_outputs([TENSOR] * count)
        self.scope += outputs
        self.fixed.update(v for v, *found in zip(outputs, *returns) if any(map(self.like, found)))

    def loop(self) -> None:
        carried = [self.tensor() for _ in range(self.draw(st.integers(1, 2)))]
        trips = self.number(self.draw(st.integers(0, 3)))
        node = self.builder.node("prim::Loop", [trips, self.builder.constant(True), *carried])
        block = node.add_block()
        block.add_param(types.INT)
        params = [block.add_param(TENSOR) for _ in carried]
        # Whatever is carried may be what was fixed before, on this trip or a later one.
        self.fixed.update(params)
        _, scope = self.block(block, params)
        inner = Builder.at_end(block)
        returned = [self.draw(st.sampled_from(scope)) for _ in carried]
        block.set_returns([inner.constant(True), *returned])
        outputs = node.add_outputs([TENSOR] * len(carried))
        self.scope += outputs
        self.fixed.update(outputs)

    def block(self, block: Block, params: list[Value] | None = None) -> tuple[Block, list[Value]]:
        """Fill a nested block; returns what is visible at its end."""
        saved = self.builder, self.scope, self.lists
        self.builder, self.scope, self.lists = Builder.at_end(block), [*self.scope, *(params or [])], [*self.lists]
        self.depth += 1
        self.nodes(4 if self.depth < 3 else 0)
        self.depth -= 1
        scope = self.scope
        self.builder, self.scope, self.lists = saved
        return block, scope


@st.composite
def programs(draw: st.DrawFn) -> Graph:
    """A graph of two tensor inputs and a bool that verifies and runs."""
    graph = Maker(draw).program(2)
    graph.verify()
    return graph


@st.composite
def modules(draw: st.DrawFn) -> Module:
    """A module whose main graph calls a function, and writes into what that returns."""
    maker = Maker(draw)
    function = maker.program(2, "f")
    main = Maker(draw).program(2, "main", [(function, [v in maker.fixed for v in function.outputs])])
    module = Module(main)
    function.module, function.weights = module, module.weights
    module.graphs["f"] = function
    module.verify()
    return module
