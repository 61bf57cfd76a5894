"""An interpreter that is obviously right: no slots, nothing dropped, nothing reused. It can be watched."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from irc.errors import Error
from irc.ir import Block, Graph, Module, Node, Tensor, Value
from irc.runtime.binding import Kernel, bind
from irc.runtime.lowering import runtime_constant

Env = dict[Value, Any]

_FAILURES = (Error, ArithmeticError, LookupError, MemoryError, TypeError, ValueError)


class Observer:
    """Is told of every node that runs. ``env`` maps the visible values to what they are then."""

    def before(self, node: Node, env: Env) -> None:
        """``node`` is about to run."""

    def after(self, node: Node, env: Env) -> None:
        """``node`` has run; its outputs are in ``env``."""

    def left_out(self, node: Node) -> None:
        """``node`` has failed, or what it needs is missing."""

    def entered(self, block: Block, env: Env) -> None:
        """The parameters of ``block`` are in ``env``."""

    def left(self, block: Block, env: Env) -> None:
        """The nodes of ``block`` have run."""


def interpret(graph: Graph, inputs: Sequence[Any], observer: Observer | None = None) -> list[Any]:
    """The outputs of ``graph``; like those of a plan, they may share memory with anything."""
    with np.errstate(all="ignore"):
        return Interpreter(graph.module, observer or Observer()).block(graph.block, inputs, {})


class Interpreter:
    """Runs blocks of the graphs of a module.

    Args:
        module: the graphs that are called.
        observer: is told of what runs.
        lenient: whether nodes that fail, and those that need their results, are left out.
    """

    def __init__(self, module: Module | None, observer: Observer, lenient: bool = False) -> None:
        self._module = module
        self._observer = observer
        self._failures = _FAILURES if lenient else ()
        self._constants: Env = {}
        self._kernels: dict[Node, Kernel] = {}

    def block(self, block: Block, arguments: Sequence[Any], outer: Env) -> list[Any]:
        env = outer | dict(zip(block.params, arguments, strict=True))
        self._observer.entered(block, env)
        for node in block.nodes:
            if self._failures and not all(v in env for v in node.inputs):
                self._observer.left_out(node)
                continue
            self._observer.before(node, env)
            try:
                results = self._node(node, [env[v] for v in node.inputs], env)
            except self._failures:
                self._observer.left_out(node)
                continue
            env.update(zip(node.outputs, results, strict=True))
            self._observer.after(node, env)
        self._observer.left(block, env)
        return [env[v] for v in block.returns]

    def _node(self, node: Node, inputs: list[Any], env: Env) -> Sequence[Any]:
        match node.kind:
            case "prim::Constant":
                return [self._constant(node)]
            case "prim::If":
                return self.block(node.blocks[0 if _truth(inputs[0]) else 1], [], env)
            case "prim::Loop" | "onnx::Loop":
                return self._loop(node, inputs, env)
            case "prim::CallFunction":
                assert self._module is not None
                return self.block(self._module.graphs[inputs[0]].block, inputs[1:], {})
            case "prim::FusionGroup":
                return self.block(node.attributes["Subgraph"].block, inputs, {})
        if node not in self._kernels:
            self._kernels[node] = bind(node)
        results = self._kernels[node](*inputs)
        if not node.outputs:
            return []
        return [results] if len(node.outputs) == 1 else results

    def _constant(self, node: Node) -> Any:
        value = node.output
        if value not in self._constants:
            name, held = node.attributes.get("name"), node.attributes.get("value")
            found = runtime_constant(held) if name is None else name
            if isinstance(held, Tensor) and not held.name:
                found = found.copy()  # copies of a node may share it, which nobody can tell, as nobody can write it
                found.flags.writeable = False
            self._constants[value] = found
        return self._constants[value]

    def _loop(self, node: Node, inputs: list[Any], env: Env) -> list[Any]:
        (body,) = node.blocks
        limit, go_on, *carried = inputs
        go_on = go_on is None or _truth(go_on)
        rows: list[list[Any]] = [[] for _ in body.returns[1 + len(carried) :]]
        iteration = 0
        while go_on and (limit is None or iteration < int(limit)):
            head = [np.array(iteration), np.array(True)] if node.kind == "onnx::Loop" else [iteration]
            condition, *returned = self.block(body, [*head, *carried], env)
            carried, scanned = returned[: len(carried)], returned[len(carried) :]
            for row, value in zip(rows, scanned):
                row.append(value.copy())
            go_on, iteration = _truth(condition), iteration + 1
        stacks = zip(rows, node.outputs[len(carried) :])
        return [*carried, *(_stacked(row, output) for row, output in stacks)][: len(node.outputs)]


def _stacked(rows: list[Any], output: Value) -> Any:
    if rows:
        return np.stack(rows)
    dims: Any = output.type  # a pass may know less of the rows than it did
    return np.empty((0, *dims.shape[1:]), dims.dtype.numpy)


def _truth(value: Any) -> bool:
    return bool(value.item() if isinstance(value, np.ndarray) else value)


# -- memory --------------------------------------------------------------------


def arrays(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """All arrays in ``value``."""
    return (v for v in _all(value) if isinstance(v, np.ndarray))


def items(value: Any) -> Sequence[Any]:
    """What a container holds; nothing for what is none."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list | tuple) else ()


def owner(array: np.ndarray[Any, Any]) -> int:
    """Identifies the memory that ``array`` lies in."""
    base: Any = array
    while (further := getattr(base, "base", None)) is not None:
        base = further
    return id(base)


def share(a: Any, b: Any) -> bool:
    """Whether two arrays share memory, or two containers are one object."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return owner(a) == owner(b) and np.shares_memory(a, b)
    return a is b and has_memory(a)


def has_memory(value: Any) -> bool:
    """Whether ``value`` is memory that others may share: tuples are if what they hold is, unlike those of numbers."""
    if isinstance(value, tuple):
        return any(map(has_memory, cast("tuple[Any, ...]", value)))
    return isinstance(value, np.ndarray | list | dict)


def share_inside(a: Any, b: Any) -> bool:
    """Whether ``a``, or anything it holds, shares memory with ``b`` or anything that holds."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return share(a, b)
    return any(share(x, y) for x in _all(a) for y in _all(b))


def _all(value: Any) -> Iterator[Any]:
    """``value`` and all it holds, each once: a list may hold itself."""
    seen: set[int] = set()
    pending = [value]
    while pending:
        found = pending.pop()
        if id(found) not in seen:
            seen.add(id(found))
            yield found
            pending += items(found)


def state(value: Any) -> Any:
    """Everything that a write into ``value``, or into what it holds, may change."""
    return [shallow(v) for v in _all(value)]


def shallow(value: Any) -> Any:
    """What a write into ``value`` itself may change."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    return [id(v) for v in items(value)]
