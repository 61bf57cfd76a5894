"""Layered layout of a directed graph, after Sugiyama, Tagawa and Toda (1981).

Four steps, each close to linear in nodes and edges:

1. ranks: a node lies below all that lead to it (longest path), what only feeds it right above it; edges that close a
   cycle count as reversed;
2. bends: an edge gets an invisible node in each layer that it crosses, which edges of one source share;
3. order: sweeps sort each layer by the mean position of neighbours; the order with the fewest crossings is kept;
4. coordinates: sweeps pull each node to the mean of its neighbours, as far as distances in its layer allow. That is
   isotonic regression, which pooling adjacent violators solves exactly (Barlow et al., 1972).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

Edges = Sequence[tuple[int, int]]

GAP, LEVEL = 18.0, 46.0
"""Pixels between boxes of a layer, and between layers."""

LONGEST = 24
"""An edge across more layers has no bends: it is drawn behind the boxes. This bounds bends by nodes, not by depth."""

_BEND = 4.0
"""Width of a bend."""

FIXED = 1e6
"""Weight of an item that others are to make room for."""

_SWEEPS = 8


@dataclass
class Layout:
    """Where boxes lie. An item is a box, by its index, or a bend, whose numbers follow those of boxes.

    Attributes:
        layers: items from top to bottom, each layer from left to right.
        x: of each item's centre.
        y: likewise.
        thick: the height of each item's layer: an edge crosses a layer straight, so that it meets no box there.
        routes: the items of each edge from its source to its target.
        width: of all.
        height: of all.
    """

    layers: list[list[int]]
    x: list[float]
    y: list[float]
    thick: list[float]
    routes: list[list[int]]
    width: float
    height: float


def lay_out(sizes: Sequence[tuple[float, float]], edges: Edges, keeps_order: bool = False) -> Layout:
    """Place boxes of ``sizes`` (width, height), such that edges lead downwards.

    Args:
        sizes: one for each box.
        edges: pairs of indices of boxes.
        keeps_order: whether boxes of a layer stay in the order of their indices.
    """
    if not sizes:
        return Layout([], [], [], [], [], 0, 0)
    forward = _acyclic(len(sizes), edges)
    ranks, feeders = _ranks(len(sizes), forward)
    layers, routes = _with_bends(ranks, forward)
    above, below = _neighbours(routes, sum(map(len, layers)))
    if not keeps_order:
        layers = _ordered(layers, above, below)
    widths = [width for width, _ in sizes] + [_BEND] * (len(above) - len(sizes))
    x = _across(layers, widths, above, below, feeders)
    y, thick, height = _down(layers, [height for _, height in sizes], len(above))
    routes = [route if edge == way else route[::-1] for route, edge, way in zip(routes, edges, forward)]
    return Layout(layers, x, y, thick, routes, max(map(float.__add__, x, [w / 2 for w in widths])), height)


def _acyclic(n: int, edges: Edges) -> list[tuple[int, int]]:
    """``edges``, of which those that close a cycle in a depth-first search are reversed."""
    if all(a <= b for a, b in edges):
        return list(edges)
    out: list[list[int]] = [[] for _ in range(n)]
    for a, b in edges:
        out[a].append(b)
    state, back = [0] * n, set[tuple[int, int]]()  # 0 not seen, 1 on the path, 2 done
    for root in range(n):
        stack = [(root, iter(out[root]))] if not state[root] else []
        state[root] = state[root] or 1
        while stack:
            a, rest = stack[-1]
            for b in rest:
                if state[b] == 1:
                    back.add((a, b))
                elif not state[b]:
                    state[b] = 1
                    stack.append((b, iter(out[b])))
                    break
            else:
                state[a] = 2
                stack.pop()
    return [(b, a) if (a, b) in back else (a, b) for a, b in edges]


def _ranks(n: int, edges: Edges) -> tuple[list[int], set[int]]:
    """The layer of each node, below all that lead to it; and the feeders.

    A feeder does not depend on where the longest path begins. It lies as low as can be: next to what needs it.
    """
    out: list[list[int]] = [[] for _ in range(n)]
    missing = [0] * n
    for a, b in edges:
        if a != b:
            out[a].append(b)
            missing[b] += 1
    ranks, order = [0] * n, [i for i in range(n) if not missing[i]]
    sources = list(order)
    for a in order:  # grows while it is walked
        for b in out[a]:
            ranks[b] = max(ranks[b], ranks[a] + 1)
            missing[b] -= 1
            if not missing[b]:
                order.append(b)
    below = [0] * n  # the longest path that begins here
    for a in reversed(order):
        below[a] = max([below[b] + 1 for b in out[a]], default=0)
    longest = max(below)
    depends = [False] * n
    for a in sources:
        depends[a] = below[a] == longest
    for a in order:
        if depends[a]:
            for b in out[a]:
                depends[b] = True
    feeders = [a for a in order if not depends[a] and out[a]]
    for a in reversed(feeders):
        ranks[a] = min([ranks[b] for b in out[a]]) - 1
    return ranks, set(feeders)


def _with_bends(ranks: Sequence[int], edges: Edges) -> tuple[list[list[int]], list[list[int]]]:
    """The layers, bends among them, and the route of each edge."""
    layers: list[list[int]] = [[] for _ in range(max(ranks) + 1)]
    for item, rank in enumerate(ranks):
        layers[rank].append(item)
    count = len(ranks)
    chains: dict[int, list[int]] = {}  # by source: the bends below it, layer by layer
    routes: list[list[int]] = []
    for a, b in edges:
        span = ranks[b] - ranks[a]
        chain = chains.setdefault(a, [])
        if span > LONGEST:
            routes.append([a, b])
            continue
        while len(chain) < span - 1:
            chain.append(count)
            layers[ranks[a] + len(chain)].append(count)
            count += 1
        routes.append([a, *chain[: max(0, span - 1)], b] if a != b else [a])
    return layers, routes


def _neighbours(routes: Sequence[Sequence[int]], n: int) -> tuple[list[list[int]], list[list[int]]]:
    """The items next to each in the layer above, and in the one below."""
    above: list[list[int]] = [[] for _ in range(n)]
    below: list[list[int]] = [[] for _ in range(n)]
    for a, b in dict.fromkeys(pair for route in routes for pair in pairwise(route)):
        below[a].append(b)
        above[b].append(a)
    return above, below


def _ordered(
    layers: list[list[int]], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]
) -> list[list[int]]:
    """The layers in the order, of those that sweeps find, with the fewest crossings."""
    best, fewest = layers, crossings(layers, below)
    place = [0.0] * len(above)
    for layer in layers:
        for i, item in enumerate(layer):
            place[item] = i - len(layer) / 2  # from the middle, as layers are centred
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        near = below if sweep % 2 else above
        layers = [list(layer) for layer in layers]
        for layer in reversed(layers) if sweep % 2 else layers:
            mean = {i: sum([place[j] for j in near[i]]) / len(near[i]) if near[i] else place[i] for i in layer}
            layer.sort(key=mean.__getitem__)
            for i, item in enumerate(layer):
                place[item] = i - len(layer) / 2
        found = crossings(layers, below)
        if found < fewest:
            best, fewest = layers, found
    return best


def crossings(layers: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> int:
    """How many pairs of edges between neighbouring layers cross."""
    total = 0
    for upper, lower in pairwise(layers):
        place = {item: i for i, item in enumerate(lower)}
        passed: list[int] = []
        for item in upper:
            ends = [place[other] for other in below[item] if other in place]
            total += sum([len(passed) - bisect_right(passed, end) for end in ends])
            for end in ends:
                insort(passed, end)
    return total


def _across(
    layers: Sequence[Sequence[int]],
    widths: Sequence[float],
    above: Sequence[Sequence[int]],
    below: Sequence[Sequence[int]],
    feeders: Collection[int],
) -> list[float]:
    """The x of each item's centre: near its neighbours, apart from others of its layer; 0 is the left."""
    distances = [[(widths[a] + widths[b]) / 2 + GAP for a, b in pairwise(layer)] for layer in layers]
    # Bends weigh most, so that long edges run straight.
    weights = [1.0 if width > _BEND else 8.0 for width in widths]
    x = [0.0] * len(widths)
    for layer, apart in zip(layers, distances):
        at = -sum(apart) / 2
        for item, distance in zip(layer, [*apart, 0.0]):
            x[item], at = at, at + distance
    # A box that nothing leads to, such as a weight's, pulls less than one in the middle of a chain.
    pull = [4.0 if up else 1.0 for up in above]
    both = [[*up, *down] for up, down in zip(above, below)]

    def sweep(near: Sequence[Sequence[int]], is_upwards: bool, moved: Collection[int] | None = None) -> None:
        """Draw each layer to its neighbours; if only some are ``moved``, others hardly make room."""
        for i in range(len(layers) - 1, -1, -1) if is_upwards else range(len(layers)):
            layer = layers[i]
            moves = [moved is None or item in moved for item in layer]
            others = [near[item] if near[item] and move else [item] for item, move in zip(layer, moves)]
            wanted = [sum([x[j] * pull[j] for j in js]) / sum([pull[j] for j in js]) for js in others]
            stiff = [weights[item] if move else FIXED for item, move in zip(layer, moves)]
            for item, found in zip(layer, spaced(wanted, stiff, distances[i])):
                x[item] = found

    # Long chains drift to a side in a sweep, and to the other one in the sweep back: the mean keeps them straight. It
    # keeps distances, too, as both do.
    for _ in range(2):
        sweep(above, False)
        sweep(below, True)
        before = list(x)
        sweep(above, False)
        x[:] = [(a + b) / 2 for a, b in zip(x, before)]
    if feeders:
        sweep(below, True, feeders)
    sweep(both, True)
    sweep(both, False)
    left = min([at - width / 2 for at, width in zip(x, widths)])
    return [at - left for at in x]


def spaced(wanted: Sequence[float], weights: Sequence[float], distances: Sequence[float]) -> list[float]:
    """Positions ``distances`` apart with the least weighted squared differences to ``wanted``."""
    offsets = [0.0]
    for distance in distances:
        offsets.append(offsets[-1] + distance)
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many positions
    for want, offset, weight in zip(wanted, offsets, weights):
        mean, count = want - offset, 1
        while pools and pools[-1][0] >= mean:
            other, more, many = pools.pop()
            mean, weight, count = (mean * weight + other * more) / (weight + more), weight + more, count + many
        pools.append((mean, weight, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets)]


def _down(layers: Sequence[Sequence[int]], heights: Sequence[float], n: int) -> tuple[list[float], list[float], float]:
    """The y of each item's centre, layer heights, and total height. Boxes begin at their layer's top."""
    y, thick, top = [0.0] * n, [0.0] * n, 0.0
    for layer in layers:
        tallest = max([heights[item] for item in layer if item < len(heights)], default=0.0)
        for item in layer:
            y[item] = top + (heights[item] if item < len(heights) else tallest) / 2
            thick[item] = tallest
        top += tallest + LEVEL
    return y, thick, top - LEVEL
