"""Runs the random programs on NumPy, and watches what really shares memory and what really changes.

All tensors are 2 by 2, so that views of any kind keep the shape. Their arrays are views of others: NumPy then lets them
have any strides, which operators on metadata change.
"""

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from irc.ir import Block, Graph, Node, Value

Array = np.ndarray[Any, Any]
Watcher = Callable[["Machine", Node, Value], None]


class Stop(Exception):
    """The program has run long enough."""


class Machine:
    """One run of a program.

    Attributes:
        objects: value -> what it is now (or was, when it was last defined).
        visible: values that are in scope.
        defined: value -> how often anything had been defined when it was.
        after: node -> what the values visible then held when it last finished: (when defined, bytes).
        counts: what was exercised.
    """

    def __init__(self, graph: Graph, numbers: list[int], steps: int = 120) -> None:
        self.graph = graph
        self._numbers = list(numbers)
        self._steps = steps
        self.objects: dict[Value, Any] = {}
        self.visible: dict[Value, None] = {}
        self.defined: dict[Value, int] = {}
        self.after: dict[Node, dict[Value, tuple[int, bytes]]] = {}
        self.counts: Counter[str] = Counter()
        self.before_node: Callable[[Node], None] = lambda node: None
        self.on_define: Callable[[Value], None] = lambda value: None

    def run(self) -> None:
        """Run from inputs of which some share memory."""
        buffer = self._fresh()
        for i, value in enumerate(self.graph.inputs):
            tensor = (buffer, buffer.T, self._fresh())[self._pick(3)]
            self._define(value, [tensor, buffer] if "[]" in str(value.type) else tensor if i else buffer)
        try:
            self._block(self.graph.block)
        except Stop:
            self.counts["stopped"] += 1

    def _pick(self, n: int) -> int:
        return self._numbers.pop(0) % n if self._numbers else 0

    def _fresh(self) -> Array:
        return (np.arange(1.0, 5.0).reshape(2, 2) * (1 + self._pick(5)) - 6)[:]

    def _define(self, value: Value, what: Any) -> None:
        self.objects[value] = what
        self.visible[value] = None
        self.defined[value] = len(self.defined) + sum(self.counts.values()) * 1000
        self.counts["definitions"] += 1
        self.on_define(value)

    def _block(self, block: Block) -> list[Any]:
        outer = dict(self.visible)
        for node in block.nodes:
            self._steps -= 1
            if self._steps < 0:
                raise Stop
            self.before_node(node)
            self._node(node)
            self.after[node] = {v: (self.defined[v], contents(self.objects[v])) for v in self.visible}
        returned = [self.objects[v] for v in block.returns]
        self.visible = {v: None for v in self.visible if v in outer}
        return returned

    def _node(self, node: Node) -> None:
        if node.kind == "prim::If":
            self.counts["branches"] += 1
            results = self._block(node.blocks[self._pick(2)])
        elif node.kind == "prim::Loop":
            results = self._loop(node)
        else:
            results = self._operator(node, [self.objects[v] for v in node.inputs])
        for value, result in zip(node.outputs, results, strict=False):
            self._define(value, result)

    def _loop(self, node: Node) -> list[Any]:
        (block,) = node.blocks
        carried = [self.objects[v] for v in node.inputs[2:]]
        iterations = self._pick(5)
        self.counts[
            "zero iterations" if iterations == 0 else "one iteration" if iterations == 1 else "several iterations"
        ] += 1
        for iteration in range(iterations):
            for param, value in zip(block.params, [iteration, *carried]):
                self._define(param, value)
            carried = self._block(block)[1:]
            for param in block.params:
                self.visible.pop(param, None)
        return carried

    def _operator(self, node: Node, given: list[Any]) -> list[Any]:
        match node.kind:
            case "prim::Constant":
                return [node.attributes.get("value")]
            case "aten::relu":
                return [np.maximum(given[0], 0)[:]]
            case "aten::t":
                return [given[0].T]
            case "aten::relu_":
                np.maximum(given[0], 0, out=given[0])
                return [given[0]]
            case "aten::add_":
                given[0] += given[1].copy()
                return [given[0]]
            case "aten::t_" | "aten::transpose_":
                return [reshaped(given[0], given[0].shape[::-1], given[0].strides[::-1])]
            case "aten::unsqueeze_":
                return [reshaped(given[0], (1, *given[0].shape), (0, *given[0].strides))]
            case "aten::squeeze_":
                unit = len(given[0].shape) - 2  # 0 of a matrix, whose axes are of size 2
                return [reshaped(given[0], given[0].shape[unit:], given[0].strides[unit:])]
            case "aten::as_strided_":
                return [reshaped(given[0], (2, 2), (8, 16))]
            case "aten::resize_":  # to the size that it has
                return [given[0]]
            case "aten::zeros":
                return [self._fresh()]
            case "aten::cat":
                return [np.array(given[0][0])[:]]
            case "aten::chunk":
                return [[given[0][:], given[0].T]]
            case "aten::add":
                return [given[0] + given[1]]
            case "prim::ListConstruct":
                return [list(given)]
            case "prim::TupleConstruct":
                return [tuple(given)]
            case "prim::DictConstruct":
                return [{given[0]: given[1]}]
            case "prim::TupleUnpack":
                return list(given[0])
            case "aten::__getitem__":
                return [given[0][given[1]]]
            case "aten::append":
                given[0].append(given[1])
                return [given[0]]
            case "aten::extend":
                given[0].extend(given[1][:4])
                return []
            case "aten::_set_item":
                given[0][given[1]] = given[2]
                return [given[0]]
            case kind:
                raise AssertionError(kind)


def reshaped(x: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """``x`` itself, which has this shape and these strides now: all that hold it see that, as in PyTorch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there is no other way to change an array itself
        x.strides = (0,) * x.ndim
        x.shape = shape
        x.strides = strides
    return x


def contents(what: Any, depth: int = 4) -> bytes:
    """All that can be seen of an object, as bytes."""
    if isinstance(what, np.ndarray):
        return what.tobytes()
    if isinstance(what, dict):
        what = list(what.values())
    if isinstance(what, list | tuple):
        return b"[" + b",".join(contents(w, depth - 1) for w in what[:8]) + b"]" if depth else b"..."
    return repr(what).encode()
