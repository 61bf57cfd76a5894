"""The passes over each row in which a program of `irc.native.rows` is computed.

There is one more than reductions depend on each other. A value that varies along rows and is needed in several passes
is computed anew in each if that is cheap, else kept in a buffer of one row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from irc.native.functions import FUNCTIONS
from irc.native.groups import ROUND, listing, ordered
from irc.native.row_operators import EXP_OF_NEGATIVE, SUM
from irc.native.rows import RowProgram, is_reduction
from irc.ops.algebra import Apply, Expression, Operand


class Pass(NamedTuple):
    """A run over the elements of a row.

    Attributes:
        order: the values that vary that are computed, each after what it is made of.
        reductions: what is reduced, the `Apply` of reducers.
        results: the numbers of the results that are written.
        kept: values that are kept for later passes.
        loaded: values that earlier passes have kept, or written as a result, whose number it is.
    """

    order: list[Expression]
    reductions: list[Apply]
    results: list[int]
    kept: list[Expression]
    loaded: dict[int, int | None]


def varying(program: RowProgram) -> set[int]:
    """The ids of the values of ``program`` that vary along its rows."""
    found: set[int] = set()
    for node in ordered([x.expression for x in program.results], lambda _: False):
        if isinstance(node, Operand):
            is_varying = any(place in program.domain.axes for _, place in program.leaves[node.index].places)
        elif isinstance(node, Apply):
            is_varying = not is_reduction(node) and any(id(x) in found for x in node.arguments)
        else:
            is_varying = False
        if is_varying:
            found.add(id(node))
    return found


_KEPT_FROM = 5
"""The cost of computing a value anew, in instructions, from which on it is kept."""


def cost_of(node: Expression, is_gathered: Callable[[int], bool]) -> int:
    """About how many instructions ``node`` takes, without what it is made of."""
    if isinstance(node, Operand):
        return 20 if is_gathered(node.index) else 1
    if not isinstance(node, Apply):
        return 0
    name = node.primitive.name
    return (
        10
        if name in FUNCTIONS or node.primitive is EXP_OF_NEGATIVE
        else 3
        if name in ("divide", "sqrt") or node.primitive is ROUND
        else 1
    )


class Schedule(NamedTuple):
    """The passes of a program.

    Attributes:
        passes: in order.
        varying: the ids of values that vary along rows.
        kept: the values that are kept.
        cost: of an element, in instructions.
    """

    passes: list[Pass]
    varying: set[int]
    kept: list[Expression]
    cost: int


def schedule(program: RowProgram, is_gathered: Callable[[int], bool]) -> Schedule:
    """What the passes of ``program`` compute, if the leaves that it says are slow to read."""
    results = [x.expression for x in program.results]
    everything = ordered(results, lambda _: False)
    vary = varying(program)
    level: dict[int, int] = {}
    for node in everything:
        below = max((level[id(x)] for x in node.arguments), default=0) if isinstance(node, Apply) else 0
        level[id(node)] = below + is_reduction(node)
    count = max(level.values()) + 1
    reductions: list[list[Apply]] = [[] for _ in range(count)]
    for node in everything:
        if isinstance(node, Apply) and is_reduction(node):
            reductions[level[id(node)] - 1].append(node)
    passes: list[Pass] = []
    first: dict[int, int] = {}  # the pass that computes a value first
    available: dict[int, int | None] = {}
    all_kept: list[Expression] = []
    cost = 0
    for number in range(count):
        written = [i for i, x in enumerate(results) if id(x) in vary and level[id(x)] == number]
        roots = [x.arguments[0] for x in reductions[number]] + [results[i] for i in written]
        order = [x for x in ordered(roots, lambda x: id(x) in available or id(x) not in vary) if id(x) in vary]
        made: dict[int, int] = {}
        for node in order:
            below = sum(made.get(id(x), 0) for x in node.arguments) if isinstance(node, Apply) else 0
            made[id(node)] = 1 if id(node) in available else below + cost_of(node, is_gathered)
        needed = {id(x) for x in roots}
        taken: list[Expression] = []
        loaded: dict[int, int | None] = {}
        for node in reversed(order):
            if id(node) not in needed:
                continue
            taken.append(node)
            if id(node) not in available and first.get(id(node), number) < number and made[id(node)] >= _KEPT_FROM:
                passes[first[id(node)]].kept.append(node)
                available[id(node)] = None
                all_kept.append(node)
            if id(node) in available:
                loaded[id(node)] = available[id(node)]
                continue
            first.setdefault(id(node), number)
            cost += cost_of(node, is_gathered)
            if isinstance(node, Apply):
                needed.update(id(x) for x in node.arguments)
        passes.append(Pass(taken[::-1], reductions[number], written, [], loaded))
        for i in written:
            result = program.results[i]
            if result.dtype == result.expression.dtype and result.dtype.kind != "b":
                available.setdefault(id(result.expression), i)
        cost += 2
    while passes and not passes[-1].reductions and not passes[-1].results:
        passes.pop()
    return Schedule(passes, vary, all_kept, cost)


def overwritable(program: RowProgram, plan: Schedule) -> list[tuple[int, int]]:
    """Pairs (result, leaf), each along the row, of which the leaf is not read after the result has been written."""
    last: dict[int, int] = {}
    written: dict[int, int] = {}
    for number, each in enumerate(plan.passes):
        last.update((x.index, number) for x in each.order if isinstance(x, Operand) and id(x) not in each.loaded)
        written.update((i, number) for i in each.results)
    return [(i, leaf) for i, at in written.items() for leaf, read in last.items() if read <= at]


def is_light(program: RowProgram) -> bool:
    """Whether vectors of more lanes than usual pay, where lanes lie across rows: the registers hold what there is."""
    nodes = ordered([x.expression for x in program.results], lambda _: False)
    names = [x.primitive.name for x in nodes if isinstance(x, Apply)]
    return sum(map(is_reduction, nodes)) == 1 and len(names) <= 4 and FUNCTIONS.keys().isdisjoint(names)


def is_scalar(program: RowProgram) -> bool:
    """Whether there is but one element of each result for a row."""
    vary = varying(program)
    return all(id(x.expression) not in vary for x in program.results)


def is_plain_sum(program: RowProgram) -> bool:
    """Whether what takes time is one sum of an operand as it is."""
    nodes = ordered([x.expression for x in program.results], lambda _: False)
    reduced = [x for x in nodes if isinstance(x, Apply) and is_reduction(x)]
    return len(reduced) == 1 and reduced[0].primitive is SUM and isinstance(reduced[0].arguments[0], Operand)


def described(program: RowProgram) -> str:
    """The program as a text, the same for programs that are the same."""
    vary = varying(program)
    text = listing([x.expression for x in program.results], lambda x: f"{x!r}{' varies' * (id(x) in vary)}")
    return f"{text}\n{' '.join(x.dtype.name for x in program.results)}"
