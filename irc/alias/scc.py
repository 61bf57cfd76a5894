"""Strongly connected components."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_T = TypeVar("_T")


def components(roots: Iterable[_T], below: Callable[[_T], Iterable[_T]]) -> Iterator[list[_T]]:
    """The strongly connected components of what ``roots`` lead to; a component comes after those that it leads to.

    Tarjan, "Depth-first search and linear graph algorithms", 1972; iterative.
    """
    order: dict[_T, int] = {}
    low: dict[_T, int] = {}
    open_: list[_T] = []
    closed: set[_T] = set()
    stack: list[tuple[_T, Iterator[_T]]] = []
    for root in roots:
        following: _T | None = None if root in order else root
        while following is not None or stack:
            if following is not None:
                order[following] = low[following] = len(order)
                open_.append(following)
                stack.append((following, iter(below(following))))
            top, rest = stack[-1]
            following = None
            for other in rest:
                if other not in order:
                    following = other
                    break
                if other not in closed:
                    low[top] = min(low[top], order[other])
            if following is not None:
                continue
            stack.pop()
            if stack:
                caller = stack[-1][0]
                low[caller] = min(low[caller], low[top])
            if low[top] == order[top]:
                found: list[_T] = []
                while not found or found[-1] != top:
                    found.append(open_.pop())
                closed.update(found)
                yield found
