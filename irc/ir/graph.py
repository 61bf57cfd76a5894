"""Graphs and modules.

A graph owns its block and the names of its values, each of which has one. A module owns graphs by name, the weight
table that they share, and what belongs to inputs of its main graph: default values and objects.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, Protocol
from weakref import ReferenceType, ref

from irc.errors import Error, did_you_mean
from irc.ir.node import Block, Node, NodeList, Value
from irc.ir.objects import Object
from irc.ir.tensor import WeightTable
from irc.ir.types import Type
from irc.support.formatting import count

# Working on large graphs without the garbage collector in the way.


@contextmanager
def gc_paused() -> Generator[None]:
    """Switch the cyclic garbage collector off while a graph is read, analysed or transformed.

    Nearly all that these steps allocate stays alive, so the collector would only
    walk it again and again: half of the time of parsing 100,000 nodes. Nodes that
    passes erase, which are in cycles, are freed after the passes are done.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# -- graph ---------------------------------------------------------------------


# pyright: reportPrivateUsage=false
# Value, Node, Block and Graph share the links and use counts that nobody else may touch.


class Observer(Protocol):
    """Somebody who is told of changes of a graph when they happen."""

    def moved(self, node: Node) -> None:
        """``node`` has come into the graph, or to another place, or is about to leave."""

    def changed(self, node: Node, values: Iterable[Value]) -> None:
        """``node`` has other inputs, results or blocks; it uses ``values``, or did."""


_NOT_PICKLED = "graphs and modules are not pickled: compile and save them, and irc.load the file in the other process"


class Graph:
    """A function in SSA form: a top block, and the names of all values in it.

    Attributes:
        name: its name in the module (``"main"`` or a function's).
        block: the top block.
        weights: the weight table, shared by all graphs of a module.
        module: the module it is part of, or None.
        has_metadata: whether something in it may have metadata: so most copies and prints need not look.
        observers: weak references to those that are told of changes (`report_to`).
    """

    __slots__ = (
        "__weakref__",
        "_counter",
        "_suffix",
        "_values",
        "block",
        "has_metadata",
        "module",
        "name",
        "observers",
        "weights",
    )

    def __init__(self, name: str = "main", weights: WeightTable | None = None, module: Module | None = None) -> None:
        self.name = name
        self.module = module
        self.weights = WeightTable() if weights is None else weights
        self._values: dict[str, Value] = {}
        self._counter = 0
        self._suffix: dict[str, int] = {}
        self.has_metadata = False
        self.observers: tuple[ReferenceType[Observer], ...] = ()
        self.block = Block(self, None)

    # -- structure -------------------------------------------------------

    @property
    def is_main(self) -> bool:
        """Whether it is the main graph of its module."""
        return self.module is not None and self.module.main is self

    @property
    def is_function(self) -> bool:
        """Whether other graphs of its module may call it, and so see and write what it returns."""
        module = self.module
        return module is not None and module.main is not self and module.graphs.get(self.name) is self

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The graph's inputs."""
        return self.block.params

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The values the graph returns; their names are the names of the model's outputs."""
        return self.block.return_node.inputs

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the model says of it: the metadata of its block."""
        return self.block.metadata

    @metadata.setter
    def metadata(self, given: Mapping[str, str]) -> None:
        self.block.metadata = given

    @property
    def nodes(self) -> NodeList:
        """The nodes of the top block, in order."""
        return self.block.nodes

    def walk(self) -> Iterator[Node]:
        """All nodes, nested ones too, in pre-order. Safe while nodes are erased, moved or inserted."""
        stack = [iter(self.block.nodes)]
        while stack:
            for node in stack[-1]:
                yield node
                if node.blocks and node.block is not None:
                    stack.extend(iter(block.nodes) for block in reversed(node.blocks))
                    break
            else:
                stack.pop()

    def blocks(self) -> Iterator[Block]:
        """All blocks, outer before inner."""
        yield self.block
        for node in self.walk():
            yield from node.blocks

    def add_input(self, type: Type, name: str = "") -> Value:
        """Append an input."""
        return self.block.add_param(type, name)

    def set_outputs(self, values: Iterable[Value]) -> None:
        """Replace all outputs."""
        self.block.set_returns(values)

    def create(
        self,
        kind: str,
        inputs: Iterable[Value] = (),
        outputs: Sequence[Type] = (),
        *,
        names: Sequence[str] = (),
        attributes: dict[str, Any] | None = None,
        version: int | None = None,
        name: str = "",
    ) -> Node:
        """A new node with outputs of the given types (and names), in no block yet."""
        node = Node(self, kind, inputs, attributes, version, name)
        node.add_outputs(outputs, names)
        return node

    # -- names -----------------------------------------------------------

    def value(self, name: str) -> Value:
        """The value called ``name`` (without ``%``), nested ones too; KeyError if there is none."""
        try:
            return self._values[name]
        except KeyError:
            hint = did_you_mean(name, self._values, "%{}".format)
            raise KeyError(f"graph {self.name!r} has no value %{name}{hint and f'; {hint}'}") from None

    def has_value(self, name: str) -> bool:
        """Whether some value is called ``name``."""
        return name in self._values

    def values(self) -> Iterator[Value]:
        """All values, in order of creation or last renaming."""
        return iter(list(self._values.values()))

    def unique_name(self, name: str = "") -> str:
        """``name`` if it is free, else ``name.N``; "" gives the next free number."""
        values = self._values
        if not name:
            while True:
                name = str(self._counter)
                self._counter += 1
                if name not in values:
                    return name
        if name not in values:
            return name
        stem, dot, last = name.rpartition(".")
        if not (dot and last.isdecimal() and stem):
            stem = name
        n = self._suffix.get(stem, 0)
        while True:
            n += 1
            unique = f"{stem}.{n}"
            if unique not in values:
                self._suffix[stem] = n
                return unique

    def name_value(self, value: Value, name: str) -> None:
        """Give a new value its name, made unique."""
        if not name or name in self._values:
            name = self.unique_name(name)
        value._name = name
        self._values[name] = value

    def rename(self, value: Value, name: str) -> None:
        """Call ``value`` ``name``; whichever value held that name gets ``name.N``."""
        if value._name == name:
            return
        holder = self._values.get(name)
        if holder is not None:
            holder._name = self.unique_name(name)
            self._values[holder._name] = holder
        del self._values[value._name]
        value._name = name
        self._values[name] = value

    def forget(self, value: Value) -> None:
        """Free the name of a value that leaves the graph."""
        if self._values.get(value._name) is value:
            del self._values[value._name]

    def without(self, values: Sequence[Value], indices: Iterable[int]) -> tuple[Value, ...]:
        """``values`` without the unused ones at ``indices``; later ones move down."""
        positions = range(len(values))
        gone = {positions[index] for index in indices}
        for value in [values[index] for index in gone]:
            if value.has_uses:
                raise ValueError(f"%{value.name} still has uses")
        kept = tuple([value for i, value in enumerate(values) if i not in gone])
        for index in gone:
            self.forget(values[index])
        for i, value in enumerate(kept):
            value.index = i
        return kept

    # -- changes ---------------------------------------------------------

    def report_to(self, observer: Observer) -> None:
        """Tell ``observer`` of all changes of nodes from now on, as long as it exists."""
        if all(each() is not observer for each in self.observers):
            self.observers = (*self.observers, ref(observer, self._dismiss))

    def _dismiss(self, gone: ReferenceType[Observer]) -> None:
        self.observers = tuple(each for each in self.observers if each is not gone)

    def report_move(self, node: Node) -> None:
        """Tell that ``node`` has come, or moved, or is about to leave; called only if there are ``observers``."""
        for each in self.observers:
            observer = each()
            if observer is not None:
                observer.moved(node)

    def report_change(self, node: Node, values: Iterable[Value]) -> None:
        """Tell that ``node`` changed, and which nodes use ``values``; called only if there are ``observers``."""
        for each in self.observers:
            observer = each()
            if observer is not None:
                observer.changed(node, values)

    # -- conveniences that other modules implement -----------------------

    def verify(self, *, operators: bool = True) -> None:
        """Raise ``irc.Error`` (IRC2xx) if the graph breaks a rule of the IR or, with ``operators``, a schema."""
        from irc.ir.verify.verifier import verify

        verify(self, operators=operators)

    def copy(self) -> Graph:
        """A structurally equal graph that shares only the (immutable) tensors."""
        from irc.ir.clone import copy_graph

        return copy_graph(self)

    def __copy__(self) -> Graph:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        return self.copy()

    def __reduce__(self) -> NoReturn:
        raise TypeError(_NOT_PICKLED)

    def __repr__(self) -> str:
        return f"<graph {self.name!r}, {count(sum(1 for _ in self.walk()), 'node')}>"

    def _repr_html_(self) -> str:
        from irc.ir.drawing import notebook_html

        return notebook_html(self)

    def __str__(self) -> str:
        from irc.ir.text.printer import print_graph

        return print_graph(self)


class Module:
    """Graphs (functions) and the weights they share.

    Attributes:
        graphs: all graphs by name, in order of definition.
        main: the entry graph.
        weights: the weight table.
        metadata: strings about the model: producer, opset imports...
        defaults: inputs of ``main`` that a caller may leave out, and the tensor, or Python value, each then has
            (ONNX: initializers that are also listed as graph inputs, IR version 4 on; TorchScript: default values).
        objects: inputs of ``main`` that are objects which come with the model (TorchScript: ``self``).
        sources: real paths of the files that it was read from, the model's own first ("" if it came without one):
            an export that replaced another one of them would take the data of the model it came from.
    """

    def __init__(self, main: Graph | None = None) -> None:
        self.weights = WeightTable() if main is None else main.weights
        self.main = Graph("main", self.weights, self) if main is None else main
        self.main.module = self
        self.graphs: dict[str, Graph] = {self.main.name: self.main}
        self.metadata: dict[str, str] = {}
        self.defaults: dict[str, Any] = {}
        self.objects: dict[str, Object] = {}
        self.sources: tuple[str, ...] = ()

    def add_graph(self, name: str) -> Graph:
        """A new, empty function called ``name``."""
        if name in self.graphs:
            raise Error("IRC202", "a module cannot hold two functions of one name", name)
        graph = Graph(name, self.weights, self)
        self.graphs[name] = graph
        return graph

    def objects_of(self, graph: Graph) -> Mapping[str, Object]:
        """The inputs of ``graph`` that are known objects, by name: empty unless it is the main graph."""
        return self.objects if graph is self.main else {}

    def verify(self, *, operators: bool = True) -> None:
        """Verify every graph, and that the tables of the module fit them."""
        from irc.ir.verify.verifier import check_module

        check_module(self)
        for graph in self.graphs.values():
            graph.verify(operators=operators)

    def copy(self) -> Module:
        """A module of copied graphs; tensors are shared."""
        from irc.ir.clone import copy_module

        return copy_module(self)

    def __copy__(self) -> Module:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Module:
        return self.copy()

    def __reduce__(self) -> NoReturn:
        raise TypeError(_NOT_PICKLED)

    def __repr__(self) -> str:
        return f"<module {self.main.name!r}, {count(len(self.graphs), 'graph')}, {count(len(self.weights), 'weight')}>"

    def __str__(self) -> str:
        from irc.ir.text.printer import print_module

        return print_module(self)
