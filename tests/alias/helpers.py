"""Graphs from text, and values by name."""

from collections.abc import Iterator, Mapping

from irc.alias import AliasDb, analyze
from irc.ir import Graph, Module, Node, Value, parse_graph
from irc.ir.objects import Object
from tests.graphs import ir
from tests.tables import with_constants


class Case:
    """A graph (IR text `with_constants`, or as for `ir`) with its alias analysis; values and nodes by name."""

    def __init__(self, text: str, noalias: tuple[str, ...] = (), objects: Mapping[str, Object] | None = None) -> None:
        self.graph: Graph = parse_graph(with_constants(text) if "::" in text or "->" not in text else ir(text))
        self.graph.verify()
        if objects:
            Module(self.graph).objects.update(objects)
        self.db: AliasDb = analyze(self.graph, noalias=noalias)

    def __getitem__(self, name: str) -> Value:
        return self.graph.value(name)

    def node(self, name: str) -> Node:
        """The node that makes ``%name``, or the ``name``-th node of that kind: ``prim::Print#1``."""
        if "::" in name:
            kind, _, number = name.partition("#")
            return [n for n in self.graph.walk() if n.kind == kind][int(number or 0)]
        node = self.graph.value(name).node
        assert node is not None
        return node

    def alias(self, a: str, b: str) -> bool:
        return self.db.may_alias(self[a], self[b])

    def contain(self, a: str, b: str) -> bool:
        return self.db.may_contain_alias(self[a], self[b])

    def must(self, a: str, b: str) -> bool:
        return self.db.must_alias(self[a], self[b])

    def written(self, name: str) -> bool:
        return self.db.has_writers(self[name])

    def claims(self, text: str) -> None:
        """All claims in ``text`` hold, with ``!`` their opposites.

        ``a ~ b`` may alias, ``a = b`` must; ``l has b`` is `may_contain_alias`; ``a written``: it has writers.
        """
        asks = {"~": self.alias, "has": self.contain, "written": self.written, "=": self.must}
        for claim in text.split(", "):
            name, relation, *other = claim.split()
            assert asks[relation.removeprefix("!")](name, *other) != relation.startswith("!"), claim

    def replace(self, old: str, new: str) -> None:
        """All uses of ``%old`` become uses of ``%new``, in the graph and in the database."""
        self[old].replace_all_uses_with(self[new])
        self.db.replace_value(self[old], self[new])

    def erase(self, *names: str) -> None:
        """The nodes that make these values go, from the graph and from the database."""
        for node in map(self.node, names):
            self.db.erase_node(node)
            node.erase()

    def order(self) -> str:
        """The names of the first outputs of the top block's nodes, in order."""
        return " ".join(n.outputs[0].name if n.outputs else n.kind for n in self.graph.nodes)


def nested(shape: str, n: int) -> Iterator[str]:
    """The text of a module with ``n`` functions f0, f1, ..., the first of which the main graph calls.

    In a ``chain`` each returns what the next does; in a ``join``, that or memory
    of its own, the last of them what it was given; so do those of a ``ring``, in
    which the last one calls the first; in a ``tree``, what either of two others does.
    """
    yield "graph main(%x : Tensor):"
    yield from _call(0, "%y")
    yield "  return (%y)"
    for i in range(n):
        yield f"graph f{i}(%x : Tensor):"
        callees = {"ring": [(i + 1) % n], "tree": [2 * i + 1, 2 * i + 2]}.get(shape, [i + 1])
        if callees[-1] >= n:
            if shape != "join":
                yield "  %y : Tensor = aten::relu(%x)"
            yield f"  return ({'%x' if shape == 'join' else '%y'})"
            continue
        if shape == "chain":
            yield from _call(callees[0], "%y")
        else:
            yield "  %c : bool = prim::Constant[value=1]()"
            yield "  %y : Tensor = prim::If(%c)"
            yield "    block0():"
            yield from ("    " + line for line in _call(callees[0], "%a"))
            yield "      -> (%a)"
            yield "    block1():"
            own = _call(callees[1], "%b") if shape == "tree" else ["  %b : Tensor = aten::relu(%x)"]
            yield from ("    " + line for line in own)
            yield "      -> (%b)"
        yield "  return (%y)"


def _call(function: int, result: str) -> list[str]:
    return [
        f'  %f{result[1:]} : Function = prim::Constant[name="f{function}"]()',
        f"  {result} : Tensor = prim::CallFunction(%f{result[1:]}, %x)",
    ]
