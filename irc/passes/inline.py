"""Inlining: calls of functions become copies of their bodies.

Bodies stay as they are, since other calls may need them; names and metadata of copies tell where they come from. Growth
is bounded by `max-nodes` before anything is copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from irc.alias.memory_dag import components
from irc.errors import Error
from irc.ir import CALL, CONSTANT, Graph, Module, Node, Value, clone_node
from irc.ir.declarations import change_declared_type
from irc.ir.metadata import inlined
from irc.ir.region_flow import callee, function_name, graphs_of, with_subgraphs
from irc.ir.types import rebuilt, without_names
from irc.passes.base import PassContext
from irc.passes.registry import check_not_negative, register
from irc.passes.rewriter import Rewriter

# Which functions of a module are referred to, kept up to date while calls are inlined in one after the other.


class References:
    """The references from functions of ``module`` to others, and how many functions refer to each."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._of = {name: self._referred(graph) for name, graph in module.graphs.items()}
        self._counts = Counter(target for targets in self._of.values() for target in targets)

    def drop_unreached(self) -> int:
        """Remove the functions that the main graph does not reach; return how many."""
        main = self._module.main.name
        reached, pending = {main}, [main]
        while pending:
            new = self._of[pending.pop()] - reached
            reached |= new
            pending += new
        unused = [name for name in self._module.graphs if name not in reached]
        for name in unused:
            self._drop(name)
        return len(unused)

    def inlined(self, graph: Graph) -> int:
        """Remove functions that nothing refers to since calls in ``graph`` were inlined; return how many.

        The main graph must have reached all functions. It still reaches those that something refers to: only a cycle
        of functions that nothing else refers to would be an exception, and what is inlined is in no cycle. A copy of
        its body refers to all that it refers to itself.
        """
        before, after = self._of[graph.name], self._referred(graph)
        self._of[graph.name] = after
        self._counts.update(after - before)
        self._counts.subtract(before - after)
        pending = list(before - after)
        dropped = 0
        while pending:
            name = pending.pop()
            if not self._counts[name] and name in self._of and name != self._module.main.name:
                pending += self._drop(name)
                dropped += 1
        return dropped

    def _drop(self, name: str) -> frozenset[str]:
        """Remove a function; return those that it referred to."""
        del self._module.graphs[name]
        targets = self._of.pop(name)
        self._counts.subtract(targets)
        return targets

    def _referred(self, graph: Graph) -> frozenset[str]:
        names = map(function_name, with_subgraphs(graph))
        return frozenset(name for name in names if name in self._module.graphs)


# -- inline --------------------------------------------------------------------


_UNCOUNTABLE = 10**18


@register
@dataclass(frozen=True)
class Inline:
    """Replace calls of the module's functions by copies of their bodies; drop functions never called.

    Names of copied values that are taken get ``.N``. Functions that call
    themselves, directly or not, stay calls.

    Attributes:
        max_nodes: the most nodes the graph may have afterwards. It is counted
            before anything is expanded, so functions that double each other
            fail at once (IRC308).
    """

    name: ClassVar[str] = "inline"
    max_nodes: int = 1_000_000

    def __post_init__(self) -> None:
        check_not_negative(self)

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Inline every call in ``graph``, nested blocks included."""
        module = graph.module
        if module is None:
            return False
        calls = list(_calls(graph))
        changed = False
        if calls:
            sizes = _sizes(module, ctx)
            self._check_size(graph, calls, sizes)
            changed = _inline_all(graph, module, calls, sizes, ctx)
            if changed and ctx.version is not None:  # to count all functions again for each would be quadratic
                ctx.memory[_sizes] = ctx.version + 1, sizes
        if changed or graph.is_main:
            changed |= _drop_unused(graph, module, ctx, changed)
        return changed

    def _check_size(self, graph: Graph, calls: list[Node], sizes: dict[str, int]) -> None:
        called = [name for call in calls if (name := callee(call)) in sizes]
        total = sum(1 for _ in with_subgraphs(graph)) + sum(sizes[name] for name in called)
        if called and total > self.max_nodes:
            largest = max(called, key=sizes.__getitem__)
            raise Error(
                "IRC308",
                f"inlining would make {total} nodes, {sizes[largest]} of them for one call of "
                f"{largest!r}; the limit is {self.max_nodes} (option max-nodes)",
                graph.name,
            )


def _calls(graph: Graph) -> Iterator[Node]:
    return (node for node in graph.walk() if node.kind == CALL)


def _sizes(module: Module, ctx: PassContext) -> dict[str, int]:
    """`_inlined_sizes`, cached until another pass changes a graph; calls inlined since count too."""
    version, sizes = ctx.memory.get(_sizes, (None, {}))
    if ctx.version is None or version != ctx.version:
        sizes = _inlined_sizes(module)
        ctx.memory[_sizes] = ctx.version, sizes
    return sizes


def _inlined_sizes(module: Module) -> dict[str, int]:
    """How many nodes each function has once everything in it is inlined.

    Functions in or above a cycle of calls have no such number and are missing.
    Callees come first, so counting expands nothing.
    """
    graphs = module.graphs
    callees = {name: [f for f in map(callee, _calls(graph)) if f in graphs] for name, graph in graphs.items()}
    sizes: dict[str, int] = {}
    for cycle in components(graphs, callees.__getitem__):
        name = cycle[0]
        if len(cycle) == 1 and all(f in sizes for f in callees[name]):
            own = sum(1 for _ in with_subgraphs(graphs[name]))
            # Capped: the sum doubles with each level of calls, and has to be printed.
            sizes[name] = min(own + sum(sizes[f] for f in callees[name]), _UNCOUNTABLE)
    return sizes


def _inline_all(graph: Graph, module: Module, calls: list[Node], sizes: dict[str, int], ctx: PassContext) -> bool:
    rewriter = ctx.rewriter(graph)
    changed = False
    pending = calls[::-1]
    while pending:
        call = pending.pop()
        name = callee(call)
        if name not in sizes:
            why = "calls itself, directly or not" if name in module.graphs else "is not in this module"
            ctx.note(call, f"function {name!r} {why}: the call stays")
        elif ctx.allow(call):
            if not changed:
                ctx.drop_alias_db(graph)  # a copy of whole bodies changes too much to tell it
            pending.extend(_inline_call(rewriter, call, module.graphs[name]))
            ctx.count("inlined")
            changed = True
    return changed


def _inline_call(rewriter: Rewriter, call: Node, function: Graph) -> list[Node]:
    """Replace ``call`` by a copy of the body of ``function``; return the calls in the copy, last first."""
    mapping: dict[Value, Value] = dict(zip(function.inputs, call.inputs[1:], strict=True))
    copies = [clone_node(node, rewriter.graph, mapping).insert_before(call) for node in function.nodes]
    fresh = {value for node in copies for value in node.outputs}
    _forget_named_sizes(copies)
    for copy in copies:
        for node in (copy, *copy.nested()):
            if node.kind != CONSTANT and not node.is_return:
                node.metadata = inlined(node, call)
    for old, result in zip(call.outputs, function.outputs, strict=True):
        new = mapping[result]
        rewriter.replace(old, new, keep_name=new in fresh)
    target = call.inputs[0].node
    rewriter.erase(call)
    if target is not None and not target.output.has_uses:
        rewriter.erase(target)
    return [node for copy in reversed(copies) for node in (copy, *copy.nested()) if node.kind == CALL]


def _forget_named_sizes(copies: list[Node]) -> None:
    """Drop a function's named sizes: the same name in the caller may mean another size."""
    nodes = [node for copy in copies for node in (copy, *copy.nested())]
    held = [graph for node in nodes for graph in graphs_of(node)]
    held += [graph for node in with_subgraphs(*held) for graph in graphs_of(node)]
    values = [value for node in nodes for value in node.outputs]
    values += [param for node in nodes for block in node.blocks for param in block.params]
    for value in (*values, *(inner for graph in held for inner in graph.values())):
        value.type = rebuilt(value.type, without_names)
        change_declared_type(value, partial(rebuilt, change=without_names))


def _drop_unused(graph: Graph, module: Module, ctx: PassContext, changed: bool) -> bool:
    """Remove functions that the main graph does not reach, where ``graph`` may have ``changed`` last."""
    version, references = ctx.memory.get(_drop_unused, (None, None))
    if references is not None and version == ctx.version and graph.is_function:
        dropped = references.inlined(graph)
    else:
        references = References(module)
        dropped = references.drop_unreached()
    if ctx.version is not None:  # to look through all functions after each that changes would be quadratic
        ctx.memory[_drop_unused] = ctx.version + (changed or dropped > 0), references
    ctx.count("dropped", dropped)
    return dropped > 0
