"""Disjoint classes of anything, by number."""

from __future__ import annotations


class Classes:
    """Classes that grow together: none is ever split. What takes time is `of`, by the logarithm of their number."""

    __slots__ = ("_parents",)

    def __init__(self) -> None:
        self._parents: list[int] = []

    def new(self) -> int:
        """A class of its own; the first is 0."""
        self._parents.append(len(self._parents))
        return len(self._parents) - 1

    def of(self, number: int) -> int:
        """The class that ``number``, a class or what was one, is part of: the smallest number in it."""
        parents = self._parents
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]
        return number

    def join(self, a: int, b: int) -> int:
        """Make two classes one, and return it."""
        a, b = self.of(a), self.of(b)
        if a > b:
            a, b = b, a
        self._parents[b] = a
        return a
