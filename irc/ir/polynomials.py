"""Sizes that have no name: sums of products of named sizes and unknown sizes.

A cache after a step is ``past + new`` long, the rows of a batch taken together are
``batch * rows``. Such a size is a number, a name or, in general form, a
`Polynomial`. Equal polynomials are written in one way, so two
sizes are surely equal if they compare equal. `unknown_size` is the size of which
nothing is known.

Sizes are integers from 0 on. Differences, which elements of index tensors
may be, can be negative: `is_size` tells which expressions surely are sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from irc.ir.limits import MAX_SIZE

_MOST_TERMS = 16
"""What has more is not known: it would be copied for each that has one term more."""

_LARGEST_POWER = 4
"""Of all that is multiplied in a term: a size of a tensor is not a product of many."""


class UnknownSize(NamedTuple):
    """The size of ``value`` along ``axis``, counted from 0."""

    value: Any
    axis: int


_Term = frozenset[tuple[str | UnknownSize, int]]
"""What is multiplied, and how often each."""

_ONE: _Term = frozenset()


@dataclass(frozen=True)
class Polynomial:
    """A sum of terms, each of them a product; never just a number or a name.

    Attributes:
        terms: the terms, each with its factor; not empty, and no factor is 0.
    """

    terms: frozenset[tuple[_Term, int]]

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    @property
    def largest(self) -> int:
        """The largest magnitude of a factor."""
        return max(abs(n) for _, n in self.terms)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return " + ".join(sorted(_text(term, n) for term, n in self.terms))

    __repr__ = __str__


Size = int | str | Polynomial | None
"""A number, a name, a sum of products of such; None if not known."""


def _text(term: _Term, n: int) -> str:
    factors = sorted(f"?{of.axis} of %{of.value.name}" if isinstance(of, UnknownSize) else of for of, _ in term)
    return "*".join([str(n)] * (n != 1 or not factors) + factors)


def unknown_size(value: Any, axis: int) -> Polynomial:
    """The polynomial for the size of ``value`` along ``axis`` if nothing is known of it."""
    return Polynomial(frozenset({(frozenset({(UnknownSize(value, axis), 1)}), 1)}))


def _terms(size: int | str | Polynomial) -> Iterable[tuple[_Term, int]]:
    if isinstance(size, Polynomial):
        return size.terms
    if isinstance(size, str):
        return ((frozenset({(size, 1)}), 1),)
    return ((_ONE, size),)


def _sum(terms: Iterator[tuple[_Term, int]]) -> Size:
    total: dict[_Term, int] = {}
    for term, n in terms:
        total[term] = total.get(term, 0) + n
    found = [(term, n) for term, n in total.items() if n]
    if not found:
        return 0
    if len(found) > _MOST_TERMS or any(abs(n) > MAX_SIZE for _, n in found):
        return None
    if len(found) == 1:
        ((term, n),) = found
        if term == _ONE:
            return n
        ((of, power), *more) = term
        if n == power == 1 and not more and isinstance(of, str):
            return of
    return Polynomial(frozenset(found))


def plus(a: Size, b: Size) -> Size:
    """``a + b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if a is None or b is None:
        return None
    return _sum(pair for size in (a, b) for pair in _terms(size))


def minus(a: Size, b: Size) -> Size:
    """``a - b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return plus(a, times(b, -1))


def times(a: Size, b: Size) -> Size:
    """``a * b``; 0 times anything is 0."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 0 or b == 0:
        return 0
    if a is None or b is None:
        return None
    if a == 1 or b == 1:
        return b if a == 1 else a
    right = list(_terms(b))
    products = [(_product(s, t), m * n) for s, m in _terms(a) for t, n in right]
    if any(sum(power for _, power in term) > _LARGEST_POWER for term, _ in products):
        return None
    return _sum(iter(products))


def _product(a: _Term, b: _Term) -> _Term:
    if not a or not b:
        return a or b
    powers = dict(a)
    for of, power in b:
        powers[of] = powers.get(of, 0) + power
    return frozenset(powers.items())


def product(sizes: Iterable[Size]) -> Size:
    """The product of sizes; 0 times anything is 0."""
    known = list(sizes)
    if 0 in known:
        return 0
    total: Size = 1
    for size in known:
        total = times(total, size)
    return total


def quotient(a: Size, b: Size) -> Size:
    """The factor that makes ``b``, of one term, into ``a``; None if there is none, or it is not known."""
    if a is None or b is None or b == 0:
        return None
    ((divisor, m), *more) = _terms(b)
    if more:
        return 1 if a == b else None
    parts: list[tuple[_Term, int]] = []
    for term, n in _terms(a):
        powers = dict(term)
        for of, power in divisor:
            powers[of] = powers.get(of, 0) - power
        if n % m or min(powers.values(), default=0) < 0:
            return None
        parts.append((frozenset((of, power) for of, power in powers.items() if power), n // m))
    return _sum(iter(parts))


def is_size(size: Size) -> bool:
    """Whether ``size`` is surely not negative."""
    if isinstance(size, Polynomial):
        return all(n > 0 for _, n in size.terms)
    return size is not None and (isinstance(size, str) or size >= 0)


def is_positive(size: Size) -> bool:
    """Whether ``size`` is surely 1 or more."""
    return is_size(minus(size, 1))


def surely_differ(a: Size, b: Size) -> bool:
    """Whether ``a`` and ``b`` are surely not equal."""
    difference = minus(a, b)
    return is_positive(difference) or is_positive(times(difference, -1))
