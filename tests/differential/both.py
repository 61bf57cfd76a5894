"""One graph in irc and in PyTorch."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch

from irc.alias import AliasDb, analyze
from irc.ir import Block, Graph, Node, Value, parse_graph


class Both:
    """A graph, and what PyTorch reads of the text that irc prints of it.

    PyTorch calls results by numbers, so values and nodes are matched by their places.
    """

    def __init__(self, graph: Graph | str, theirs: Any = None, noalias: tuple[str, ...] = ()) -> None:
        self.graph = parse_graph(graph) if isinstance(graph, str) else graph
        self.theirs = torch._C.parse_ir(str(self.graph)) if theirs is None else theirs
        self.db: AliasDb = analyze(self.graph, noalias=noalias)
        self.values: dict[Value, Any] = {}
        self.nodes: dict[Node, Any] = {}
        self._match(self.graph.block, self.theirs)
        self.refresh()

    def refresh(self) -> None:
        """Let PyTorch analyse its graph, which remembers nothing of what was asked before."""
        self.their_db = self.theirs.alias_db()

    def _match(self, block: Block, theirs: Any) -> None:
        outputs = [(n, list(n.outputs())) for n in theirs.nodes()]
        self.values.update(zip(block.params, theirs.inputs(), strict=True))
        assert len(outputs) == sum(1 for _ in block.nodes), "a node was lost"
        for node, (their_node, results) in zip(block.nodes, outputs):
            assert node.kind == their_node.kind()
            self.nodes[node] = their_node
            self.values.update(zip(node.outputs, results, strict=True))
            for inner, their_inner in zip(node.blocks, their_node.blocks(), strict=True):
                self._match(inner, their_inner)

    # -- PyTorch's answers -------------------------------------------------

    def they_contain(self, a: Value, b: Value) -> bool:
        return self.their_db.may_contain_alias(self.values[a], self.values[b])

    def they_write(self, value: Value) -> bool:
        return self.their_db.has_writers(self.values[value])

    def they_move(self, node: Node, point: Node, before: bool) -> bool:
        """Whether they move it; if so, their graph has changed."""
        move = self.their_db.move_before_topologically_valid if before else self.their_db.move_after_topologically_valid
        return move(self.nodes[node], self.nodes[point])

    def would_they_move(self, node: Node, point: Node, before: bool) -> bool:
        """Whether they move it, which is then taken back: only nodes from one to the other change places."""
        is_moved = self.they_move(node, point, before)
        if is_moved:
            for first, second in pairwise(between(node, point)):
                self.nodes[second].moveAfter(self.nodes[first])
        return is_moved

    def __getitem__(self, name: str) -> Value:
        return self.graph.value(name)


def between(a: Node, b: Node) -> list[Node]:
    """The nodes from one to the other, both included, in order."""
    first, last = (a, b) if a.is_before(b) else (b, a)
    found = [first]
    while found[-1] is not last:
        following = found[-1].next
        assert following is not None
        found.append(following)
    return found


def run(theirs: Any, *arguments: Any) -> Any:
    """What PyTorch computes of its graph, unoptimised."""
    with torch.jit.optimized_execution(False), torch.no_grad():
        return torch._C._create_function_from_graph("f", theirs)(*arguments)


def tensors(x: Any) -> Iterator[torch.Tensor]:
    """All tensors in ``x``."""
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, dict):
        for key, value in x.items():
            yield from tensors(key)
            yield from tensors(value)
    elif isinstance(x, list | tuple):
        for item in x:
            yield from tensors(item)


def share(a: Any, b: Any) -> bool:
    """Whether a tensor in ``a`` lies in the storage of one in ``b``."""
    storages = [{t.untyped_storage().data_ptr() for t in tensors(x) if t.numel()} for x in (a, b)]
    return not storages[0].isdisjoint(storages[1])
