"""What makes a layered drawing readable: boxes apart, edges downwards, few crossings, and time close to linear."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.drawing.layout import GAP, LEVEL, Layout, crossings, lay_out, spaced
from tests.effort import examples

Edges = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn, acyclic: bool = False) -> tuple[list[tuple[float, float]], Edges]:
    sizes = draw(st.lists(st.tuples(st.floats(10, 300), st.floats(10, 300)), min_size=1, max_size=30))
    ends = st.integers(0, len(sizes) - 1)
    edges = draw(st.lists(st.tuples(ends, ends), max_size=60))
    return sizes, [(a, b) for a, b in edges if a < b] if acyclic else edges


@examples(200)
@given(graphs())
def test_boxes_do_not_overlap_and_lie_inside(graph: tuple[list[tuple[float, float]], Edges]) -> None:
    sizes, edges = graph
    at = lay_out(sizes, edges)
    boxes = [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for x, y, (w, h) in zip(at.x, at.y, sizes)]
    for i, (left, top, right, bottom) in enumerate(boxes):
        assert left >= -1e-6 and top >= -1e-6 and right <= at.width + 1e-6 and bottom <= at.height + 1e-6
        for other in boxes[:i]:
            apart = left >= other[2] + GAP - 1e-6 or right <= other[0] - GAP + 1e-6
            assert apart or top >= other[3] or bottom <= other[1]


@examples(200)
@given(graphs())
def test_routes_lead_from_source_to_target_along_neighbouring_layers(
    graph: tuple[list[tuple[float, float]], Edges],
) -> None:
    sizes, edges = graph
    at = lay_out(sizes, edges)
    rank = {item: i for i, layer in enumerate(at.layers) for item in layer}
    assert len(rank) == len(at.x) and set(range(len(sizes))) <= rank.keys()
    for (a, b), route in zip(edges, at.routes):
        assert (route[0], route[-1]) == (a, b) and all(item >= len(sizes) for item in route[1:-1])
        if len(route) > 2:
            assert {abs(rank[u] - rank[v]) for u, v in pairwise(route)} == {1}


@examples(100)
@given(graphs(acyclic=True))
def test_edges_of_an_acyclic_graph_lead_downwards(graph: tuple[list[tuple[float, float]], Edges]) -> None:
    sizes, edges = graph
    at = lay_out(sizes, edges)
    assert all(at.y[a] + sizes[a][1] / 2 < at.y[b] - sizes[b][1] / 2 for a, b in edges)


def crossings_of(at: Layout) -> int:
    below: list[list[int]] = [[] for _ in at.x]
    for a, b in {pair for route in at.routes for pair in pairwise(route)}:
        below[a].append(b)
    return crossings(at.layers, below)


def blocks_of_towers(towers: int, blocks: int) -> Edges:
    """Blocks in which as many towers of two nodes, listed in a shuffled order, lead from one node to one that joins."""
    draw, edges, last = random.Random(0), Edges(), 0
    for _ in range(blocks):
        first, second = (list(range(last + 1 + i * towers, last + 1 + (i + 1) * towers)) for i in range(2))
        draw.shuffle(second)
        join = last + 1 + 2 * towers
        edges += [(last, a) for a in first] + list(zip(first, second)) + [(b, join) for b in second]
        edges.append((last, join))
        last = join
    return edges


def test_few_edges_cross() -> None:
    """Of towers, which need not cross; of random layers, less than half as many as in the order of the nodes."""
    edges = blocks_of_towers(6, 10)
    count = edges[-1][1] + 1
    assert crossings_of(lay_out([(80, 40)] * count, edges, keeps_order=True)) > 50
    assert crossings_of(lay_out([(80, 40)] * count, edges)) == 0
    draw = random.Random(1)
    edges = [
        (draw.randrange(i * 8, i * 8 + 8), draw.randrange(i * 8 + 8, i * 8 + 16)) for i in range(20) for _ in range(12)
    ]
    naive, ours = (crossings_of(lay_out([(80, 40)] * 168, edges, keeps_order=keeps)) for keeps in (True, False))
    assert ours < naive / 2


def test_long_chains_are_straight_and_what_they_need_is_near() -> None:
    """Blocks whose input goes around two nodes, and one node that needs a chain of its own at the end."""
    blocks = 60
    edges = [edge for i in range(0, 3 * blocks, 3) for edge in ((i, i + 1), (i + 1, i + 2), (i + 2, i + 3), (i, i + 3))]
    end = 3 * blocks
    edges += [(end + 1, end + 2), (end + 2, end + 3), (end + 3, end)]
    at = lay_out([(100, 40)] * (end + 4), edges)
    chain = at.x[: end + 1]
    assert max(chain) - min(chain) < 300
    assert at.y[end] - at.y[end + 1] < 4 * (40 + LEVEL)


def test_bends_are_bounded_however_long_edges_are() -> None:
    """A value that each of 3,000 layers reads, and each layer's that the last reads, would need millions."""
    n = 3000
    edges = [(i, i + 1) for i in range(n)] + [(0, i) for i in range(2, n)] + [(i, n) for i in range(1, n - 1)]
    at = lay_out([(80, 40)] * (n + 1), edges)
    assert len(at.x) < 30 * n


@examples(100)
@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(0, 50)), min_size=1, max_size=12))
def test_positions_keep_their_distances_and_none_is_better_alone(given: list[tuple[float, float]]) -> None:
    wanted, distances = [want for want, _ in given], [distance for _, distance in given[1:]]
    found = spaced(wanted, [1.0] * len(wanted), distances)
    assert all(b - a >= distance - 1e-6 for (a, b), distance in zip(pairwise(found), distances))
    for i, (at, want) in enumerate(zip(found, wanted)):
        step = 1e-3 if want > at else -1e-3
        blocked = found[i + 1] - at - distances[i] if step > 0 and i + 1 < len(found) else None
        blocked = at - found[i - 1] - distances[i - 1] if step < 0 and i > 0 else blocked
        assert abs(want - at) < 1e-2 or (blocked is not None and blocked < 1e-2)


@pytest.mark.parametrize("edges", [[], [(0, 0)], [(0, 1), (1, 0)], [(1, 0)]])
def test_small_graphs(edges: Edges) -> None:
    at = lay_out([(10, 10), (10, 10)], edges)
    assert len(at.routes) == len(edges) and at.width > 0
    assert lay_out([], []) == Layout([], [], [], [], [], 0, 0)
