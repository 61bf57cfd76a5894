"""What the blocks around a view say of integers: guards of an If, and how often a loop runs.

A fact is a number that is at least 0. Invariants:

- A fact of a block holds in each execution of it, and nowhere else.
- Facts are about integers of the graph themselves, and sums of sizes and counters. Other sums may wrap around at 64
  bits: `n + 1 < m` says nothing of `n`. Tensors, which something may write, and floats are no integers of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator

from irc.ir import Block, Value, constant_value
from irc.ir.kinds import IF, PRIM_LOOP
from irc.ir.polynomials import Size, minus
from irc.ops.regions import is_exact, quantity

MOST_FACTS = 4
"""Of more, those of the blocks farther out are not used: a proof may try all subsets."""

_DEEPEST = 4
"""How many conditions deep conjunctions are looked into."""

_LESS = {"aten::lt": (0, 1, 1), "aten::le": (0, 1, 0), "aten::gt": (1, 0, 1), "aten::ge": (1, 0, 0)}
"""Comparisons: which operand is the smaller one, which the larger one, and by how much it is larger at least."""

_EQUAL = {"aten::eq": True, "aten::ne": False}
"""Comparisons, and what they give if the operands are equal."""


def facts_of(block: Block) -> Iterator[Size]:
    """Numbers that are at least 0 whenever ``block`` itself runs, whatever is known around it."""
    node = block.node
    if node is not None and node.kind == IF:
        facts = _of(node.inputs[0], node.blocks[0] is block)
    elif node is not None and node.kind == PRIM_LOOP:
        facts = iter([_distance(block.params[0], node.inputs[0], 1)])
    else:
        return
    yield from (fact for fact in facts if fact is not None)


def _distance(low: Value, high: Value, more: int) -> Size:
    """``high - low - more``; None unless both are integers of the graph that did not wrap."""
    first, last = quantity(low), quantity(high)
    return minus(minus(last, first), more) if is_exact(first) and is_exact(last) else None


def _of(condition: Value, holds: bool, depth: int = 0) -> Iterator[Size]:
    """Numbers that are at least 0 if ``condition`` holds, or if it does not."""
    node = condition.node
    if node is None or depth > _DEEPEST:
        return
    if node.kind in _LESS and len(node.inputs) == 2:
        low, high, more = _LESS[node.kind]
        a, b = node.inputs[low], node.inputs[high]
        yield _distance(a, b, more) if holds else _distance(b, a, 1 - more)
    elif node.kind in _EQUAL and len(node.inputs) == 2 and holds is _EQUAL[node.kind]:
        yield _distance(node.inputs[0], node.inputs[1], 0)
        yield _distance(node.inputs[1], node.inputs[0], 0)
    elif node.kind == "aten::__not__":
        yield from _of(node.inputs[0], not holds, depth + 1)
    elif node.kind == IF:  # `a and b` gives False, `a or b` True, where it does not ask for b
        given = [block.returns[condition.index] for block in node.blocks]
        for taken, other in ((0, 1), (1, 0)):
            if constant_value(given[other]) is not holds and isinstance(constant_value(given[other]), bool):
                yield from _of(node.inputs[0], taken == 0, depth + 1)
                yield from _of(given[taken], holds, depth + 1)
