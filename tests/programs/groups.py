"""Cuts programs into groups of nodes as no pass would: with views, writes, branches, calls and other groups inside."""

from collections.abc import Iterator, Sequence
from random import Random

from hypothesis import strategies as st

from irc.ir import CONSTANT, GROUP, Graph, Module, Node, Value
from irc.ir.clone import splice_node
from irc.ir.region_flow import inner_graph

Cut = tuple[int, int, int]

cuts: st.SearchStrategy[list[Cut]] = st.lists(
    st.tuples(st.integers(0, 1 << 10), st.integers(1, 10), st.integers(0, 1 << 10)), max_size=6
)
"""Of each group: a number that says which node is the first, how many it has at most, and what is odd about it."""


def regroup(module: Module, groups: Sequence[Cut]) -> None:
    """Put nodes of ``module`` into groups."""
    for first, count, seed in groups:
        nodes = list(_nodes(module))
        if nodes:
            node = nodes[first % len(nodes)]
            assert node.block is not None
            beside = list(node.block.nodes)
            start = beside.index(node)
            _group(beside[start : start + count], Random(seed))


def _nodes(module: Module) -> Iterator[Node]:
    """All nodes but constants, those in groups too."""
    graphs = list(module.graphs.values())
    for graph in graphs:
        for node in graph.walk():
            inner = inner_graph(node)
            if inner is not None:
                graphs.append(inner)
            if node.kind != CONSTANT:
                yield node


def _group(nodes: list[Node], odd: Random) -> None:
    """Put ``nodes``, adjacent ones, into a group, which may be given, and give, things twice or for nothing."""
    outer = nodes[0].graph
    graph = Graph("cut", outer.weights, outer.module)
    group, block = outer.create(GROUP, attributes={"Subgraph": graph}).insert_after(nodes[-1]), nodes[0].block
    assert block is not None
    inside = list(_inside(nodes))
    made = {value for node in inside for value in (*node.outputs, *(p for block in node.blocks for p in block.params))}
    returned: list[Value] = []

    def rarely() -> bool:
        return not odd.randrange(8)

    def give(inner: Value, value: Value, users: list[Node]) -> None:
        results = [group.add_output(inner.type) for _ in range(1 + rarely())]
        returned.extend([inner] * len(results))
        for user in users:
            user.replace_uses(value, odd.choice(results))

    for value in dict.fromkeys(value for node in inside for value in node.inputs if value not in made):
        params = [graph.add_input(value.type) for _ in range(1 + rarely())]
        for node in inside:
            node.set_inputs([odd.choice(params) if v is value else v for v in node.inputs])
        later = [user for user in value.users if user.ancestor_in(block) and group.is_before(user)]
        group.set_inputs([*group.inputs, *[value] * len(params)])
        if rarely():
            give(params[0], value, [user for user in later if odd.randrange(2)])
    for node in nodes:
        for value in node.outputs:
            users = [user for user in value.users if user not in inside]
            if users or rarely():
                give(value, value, users)
        splice_node(node, graph.block.return_node)
    graph.set_outputs(returned)


def _inside(nodes: Sequence[Node]) -> Iterator[Node]:
    """``nodes`` and all in their blocks, the blocks' ends too."""
    for node in nodes:
        yield node
        for block in node.blocks:
            yield from _inside([*block.nodes, block.return_node])
