"""The verifier: whether a graph keeps the rules of the IR.

Linear in the size of the graph: one walk checks structure, names, use lists
and visibility, and each node against the rules of its operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from irc.errors import Error, error_text
from irc.ir.graph import Graph, Module
from irc.ir.limits import MAX_BLOCK_DEPTH, MAX_BLOCKS, MAX_SUBGRAPH_DEPTH
from irc.ir.node import Block, Node, Value
from irc.ir.objects import EnumMember, Object, Strided
from irc.ir.schema import schema_lookup
from irc.ir.tensor import Tensor
from irc.ir.types import accepts
from irc.ir.verify.operator_rules import check_attributes, check_form, content_fault, node_error, type_fault

# Rules of modules: a graph refers to its own module, and defaults and objects are those of existing inputs.


# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnnecessaryIsInstance=false
# What passes may have put into a module is of any class.


def check_module(module: Module) -> None:
    """Check all of ``module`` but its graphs themselves.

    Raises:
        Error: IRC210 graphs, names and tables do not fit together; IRC214 a default value, or an object, is none of its
            input's type; IRC215 metadata, or values in these tables, are of no class that the IR knows.
    """
    main: Any = module.main
    graphs: Any = module.graphs
    if not isinstance(main, Graph) or not isinstance(main.name, str) or graphs.get(main.name) is not main:
        raise Error("IRC210", "the module's graphs do not hold the main graph under its name")
    for name, graph in graphs.items():
        fault = _graph_fault(name, graph, module)
        if fault:
            raise Error("IRC210", f"the module's graph {name!r} {fault}")
    for what in ("metadata", "defaults", "objects"):
        table: Any = getattr(module, what)
        if not isinstance(table, dict):
            raise Error("IRC210", f"the {what} of a module are a dict, not {table!r}")
    for key, text in module.metadata.items():
        if not isinstance(text, str) or not isinstance(key, str):
            raise Error("IRC215", f"metadata must be strings, not {key!r}: {text!r}")
    if module.defaults or module.objects:
        _check_inputs(module)


def _graph_fault(name: str, graph: Any, module: Module) -> str:
    """What is wrong with a graph that is entered as ``name``; "" if nothing is."""
    if not isinstance(graph, Graph):
        return f"is {graph!r}"
    if not isinstance(graph.name, str) or graph.name != name:
        return f"is called {graph.name!r} itself"
    if graph.module is not module:
        return "belongs to another module: copy it"
    return "" if graph.weights is module.weights else "has a weight table of its own: graphs of a module share one"


def _check_inputs(module: Module) -> None:
    inputs = {value.name: value for value in module.main.inputs}
    for what, table in (("a default value", module.defaults), ("an object", module.objects)):
        for name, held in table.items():
            if name not in inputs:
                raise Error("IRC210", f"the module has {what} for {name!r}, which is not an input")
            fault = _fault(held)
            if fault is not None:
                raise Error("IRC215", f"{what} of input {name!r} {fault}")
            expected = inputs[name].type
            if isinstance(held, Tensor | Object) and not accepts(expected, held.type):
                raise Error("IRC214", f"{what} of input {name!r} is {held.type}, not {expected}")


def _fault(held: Any) -> str | None:
    """What is wrong with a value that a module keeps for an input, contents included; None if nothing."""
    pending = [held]
    while pending:
        value = pending.pop()
        if isinstance(value, Object):
            pending += value.attributes.values()
        elif isinstance(value, list | tuple) and not isinstance(value, Strided):
            pending += value
        elif isinstance(value, dict):
            pending += [*value.keys(), *value.values()]
        elif isinstance(value, Tensor):
            if (fault := content_fault(value)) is not None:
                return fault
        elif value.__class__ not in _PLAIN:
            return f"holds a {value.__class__.__module__}.{value.__class__.__name__}, which a module cannot keep"
    return None


_PLAIN = frozenset([bool, int, float, complex, str, type(None), EnumMember, Strided])


# -- verifier ------------------------------------------------------------------


# pyright: reportPrivateUsage=false
# The verifier checks just what the methods of blocks, nodes and values keep right by themselves.


def verify(graph: Graph, *, operators: bool = True) -> None:
    """Check ``graph`` and the graphs in its attributes.

    Args:
        graph: the graph.
        operators: whether to check nodes against the schemas of their operators too, which
            imports the ``onnx`` package if there are ONNX operators.

    Raises:
        Error: IRC210 blocks, nodes, values or use lists do not fit together; IRC211 names are
            wrong; IRC212 a value is used where it is not visible; IRC213 an operator has a wrong
            number of inputs, outputs or blocks; IRC214 types contradict each other; IRC215 an
            attribute is wrong; IRC216 blocks or graphs nest too deeply, or a node has too many
            blocks; IRC217 there is no such operator.
    """
    todo = [(graph, 1)]
    seen = {id(graph)}
    while todo:
        current, depth = todo.pop()
        for node, subgraph in _checked(current, operators):
            if id(subgraph) in seen:
                raise node_error("IRC210", "the node's graph belongs to another node as well: copy it", node)
            if depth == MAX_SUBGRAPH_DEPTH:
                raise node_error("IRC216", f"graphs nest in graphs deeper than {MAX_SUBGRAPH_DEPTH} levels", node)
            seen.add(id(subgraph))
            todo.append((subgraph, depth + 1))


def _checked(graph: Graph, operators: bool) -> list[tuple[Node, Graph]]:
    """What `_GraphCheck.run` returns; IRC210 if it stumbles over what is none of the IR's classes."""
    try:
        return _GraphCheck(graph, operators).run()
    except Error:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # Such as None among the inputs of a node. Methods never make one, so sound graphs are not searched for it.
        message = f"a part of it is of a class that is none of the IR's: {error_text(error)}"
        raise Error("IRC210", message, f"graph {graph.name}") from error


@dataclass(slots=True)
class _Frame:
    """A block being checked.

    Attributes:
        block: the block.
        at: the node checked last; the block's return node before the first.
        blocks_left: nested blocks of ``at`` still to be checked, last first.
        defined: the values defined in the block so far.
        count: the number of nodes checked.
    """

    block: Block
    at: Node
    blocks_left: list[Block] = field(default_factory=list[Block])
    defined: list[Value] = field(default_factory=list[Value])
    count: int = 0


class _GraphCheck:
    """Checks one graph."""

    def __init__(self, graph: Graph, operators: bool) -> None:
        self._graph = graph
        self._schemas = schema_lookup() if operators else None
        self._visible: set[Value] = set()
        self._types: set[int] = set()  # those checked, by identity: many values may share one
        self._values: list[Value] = []  # of blocks that have ended
        self._users = 0  # pairs of a node and a value that it uses
        self._subgraphs: list[tuple[Node, Graph]] = []

    def run(self) -> list[tuple[Node, Graph]]:
        """Check everything; the graphs in attributes, with the nodes that they belong to."""
        frames = [self._enter(self._graph.block, None)]
        while frames:
            frame = frames[-1]
            node = self._nodes(frame)
            if node is not None:
                if len(frames) == MAX_BLOCK_DEPTH:
                    raise node_error("IRC216", f"blocks nest deeper than {MAX_BLOCK_DEPTH} levels", node)
                if len(node.blocks) > MAX_BLOCKS:
                    raise node_error("IRC216", f"the node has more than {MAX_BLOCKS} blocks", node)
                frames.append(self._enter(frame.blocks_left.pop(), node))
                continue
            self._inputs(frame.block.return_node)
            self._visible.difference_update(frame.defined)
            self._values += frame.defined
            frames.pop()
        self._totals()
        return self._subgraphs

    def _enter(self, block: Block, node: Node | None) -> _Frame:
        end = block.return_node
        if block.graph is not self._graph or block.node is not node or end.block is not block or not end.is_return:
            raise self._error("a block's graph or enclosing node is wrong")
        self._check_types(block.params)
        frame = _Frame(block, end)
        for i, param in enumerate(block.params):
            if param.node is not None or param._param_of is not block or param.index != i:
                raise self._error(f"%{param.name} does not know that it is parameter {i}")
            self._define(param, frame)
        return frame

    def _nodes(self, frame: _Frame) -> Node | None:
        """Check nodes up to one that has blocks left to check (returned), or to the end of the block (None)."""
        block, node = frame.block, frame.at
        end = block.return_node
        while True:
            if frame.blocks_left:
                return node
            if node is not end:  # only now, as its own blocks cannot use its outputs
                self._outputs(node, frame)
            before, node = node, node._next
            if node is None or node._prev is not before or node.block is not block:
                raise self._error(f"the links between the nodes of a block are broken after {before!r}")
            if node is end:
                if frame.count != len(block.nodes):
                    raise self._error("a block's count of nodes is wrong")
                return None
            frame.at = node
            frame.count += 1
            if before is not end and node._order <= before._order:
                raise node_error("IRC210", "the position label is not above that of the node before", node)
            self._node(node)
            frame.blocks_left = list(node.blocks[::-1])

    def _node(self, node: Node) -> None:
        if node.graph is not self._graph or node.is_return:
            raise node_error("IRC210", "the node does not belong to the graph that it is in", node)
        self._inputs(node)
        self._check_types(node.outputs)
        if not (isinstance(node.name, str) and isinstance(node.scope, str) and isinstance(node.attributes, dict)):  # type: ignore[reportUnnecessaryIsInstance]  # passes are not typed
            raise node_error("IRC210", "its name and scope must be strings, and its attributes a dict", node)
        version = node.version
        if version is not None and (version.__class__ is not int or version.bit_length() > 63):
            raise node_error("IRC215", "the version of a node is an integer of 64 bits, or None", node)
        if node.attributes:
            for subgraph in check_attributes(node):
                self._subgraphs.append((node, subgraph))
        check_form(node)
        if self._schemas is not None:
            self._schemas.check(node)

    def _inputs(self, node: Node) -> None:
        """Check that the inputs of a node, or the returns of a block, are visible and know their user."""
        inputs = node.inputs
        visible = self._visible
        for i, value in enumerate(inputs):
            if value not in visible:
                raise self._not_visible(node, i)
        distinct = set(inputs)
        self._users += len(distinct)
        if len(distinct) == len(inputs):
            for value in distinct:
                if value._users.get(node) != 1:
                    raise self._wrong_use(node, value)
        else:
            for value, count in Counter(inputs).items():
                if value._users.get(node) != count:
                    raise self._wrong_use(node, value)

    def _outputs(self, node: Node, frame: _Frame) -> None:
        for i, value in enumerate(node.outputs):
            if value.node is not node or value.index != i or value._param_of is not None:
                raise node_error("IRC210", f"%{value.name} does not know that it is output {i}", node, output=i)
            self._define(value, frame)

    def _define(self, value: Value, frame: _Frame) -> None:
        if value.graph is not self._graph:
            raise self._wrong_value("IRC210", f"%{value.name} belongs to another graph", value)
        name = value._name
        if self._graph._values.get(name) is not value or not name or not isinstance(name, str):  # type: ignore[reportUnnecessaryIsInstance]  # passes are not typed
            message = f"%{value.name} is not the value that the graph knows by this name"
            raise self._wrong_value("IRC211", message, value)
        self._visible.add(value)
        frame.defined.append(value)

    def _check_types(self, values: Sequence[Value]) -> None:
        """Check that the types of ``values`` are well formed, before anything else looks at them."""
        for value in values:
            if id(value.type) in self._types:
                continue
            self._types.add(id(value.type))
            fault = type_fault(value.type)
            if fault is not None:
                raise self._wrong_value("IRC214", f"%{value.name} has a wrong type: {fault}", value)

    # -- errors ----------------------------------------------------------

    def _error(self, message: str, code: str = "IRC210") -> Error:
        return Error(code, message, f"graph {self._graph.name}")

    def _not_visible(self, node: Node, index: int) -> Error:
        value = node.inputs[index]
        home = value.block
        if value.graph is not self._graph:
            why = f"%{value.name} belongs to another graph"
        elif home is None:
            why = f"%{value.name} comes from a node that is in no block (erased, or not inserted)"
        elif value.node is not None and (around := node.ancestor_in(home)) is not None:
            inside = around is value.node and node is not around
            why = f"%{value.name} is used {'inside its own node' if inside else 'before it is defined'}"
        else:
            why = f"%{value.name} is defined in a block that is not around its use"
        return node_error("IRC212", why, node, input=index)

    def _wrong_value(self, code: str, message: str, value: Value) -> Error:
        if value.node is None:
            return self._error(message, code)
        return node_error(code, message, value.node, output=value.index)

    def _wrong_use(self, node: Node, value: Value) -> Error:
        known, found = value._users.get(node, 0), node.inputs.count(value)
        message = f"%{value.name} counts {known} uses by this node, which uses it {found} times"
        return node_error("IRC210", f"{message}: change inputs only through methods", node)

    def _totals(self) -> None:
        """Check that no value has further users, and the graph no further names, than the walk has found."""
        graph = self._graph
        if sum([len(value._users) for value in self._values]) != self._users:
            nodes = {*graph.walk(), *(block.return_node for block in graph.blocks())}
            for value in self._values:
                for user in value._users:
                    if user not in nodes or value not in user.inputs:
                        wrong = "that does not use it" if user in nodes else "that is in no block: insert or erase it"
                        raise self._error(f"%{value.name} has a user {wrong}: {user!r}")
        if len(graph._values) != len(self._values):
            stale = set(graph._values.values()).difference(self._values)
            names = ", ".join(sorted(f"%{value.name}" for value in stale)[:5])
            raise self._error(f"the graph still knows the names of values that are gone: {names}", "IRC211")
