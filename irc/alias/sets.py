"""Sets of memory locations.

Almost all elements of a real graph denote one location or two, a few denote
very many. So a set has one of three forms, by its size alone:

- one location: the plain ``int``;
- none, or up to 16: a ``frozenset``;
- more: a ``BigSet``, a sparse sequence of ``bitarray`` chunks.

Sets are hash-consed: equal ones are one object, so ``is`` compares them and
unions of them are memoised. Chunks are hash-consed too: in a chain of sets
that each add one location to the last, a new set costs one chunk, not a copy.
(A dense bitset an element would take 62 GB for a million singletons.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import is_
from typing import TypeAlias

from bitarray import bitarray, frozenbitarray
from bitarray.util import any_and

_SMALL = 16
_BITS = 4096
"""Bits a chunk: 512 bytes."""

_Chunk: TypeAlias = frozenbitarray

EMPTY: frozenset[int] = frozenset()


class BigSet:
    """More than 16 locations. Made only by ``SetTable``.

    Chunk n holds locations n * 4096 to n * 4096 + 4095. Chunks are hash-consed,
    so two sets are equal if their chunks are the same objects.
    """

    __slots__ = ("_hash", "chunks", "size")

    def __init__(self, chunks: tuple[_Chunk, ...], size: int) -> None:
        self.chunks = chunks
        self.size = size
        self._hash = hash(tuple(map(id, chunks)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, BigSet)
            and self.size == other.size
            and len(self.chunks) == len(other.chunks)
            and all(map(is_, self.chunks, other.chunks))
        )

    def __iter__(self) -> Iterator[int]:
        for number, bits in enumerate(self.chunks):
            if bits is not _NONE:
                base = number * _BITS
                for i in bits.search(_ONE):
                    yield base + i

    def __len__(self) -> int:
        return self.size

    def __contains__(self, location: int) -> bool:
        number = location // _BITS
        return number < len(self.chunks) and bool(self.chunks[number][location % _BITS])


LocationSet: TypeAlias = int | frozenset[int] | BigSet

_ONE = bitarray("1")
_NONE = frozenbitarray(_BITS)
"""The chunk without locations: the only such one in any set."""


def members(a: LocationSet) -> Iterable[int]:
    """The locations in ``a``."""
    return (a,) if isinstance(a, int) else a


def contains(a: LocationSet, location: int) -> bool:
    """Whether ``location`` is in ``a``."""
    return a == location if isinstance(a, int) else location in a


def intersects(a: LocationSet, b: LocationSet) -> bool:
    """Whether ``a`` and ``b`` have a location in common."""
    if a is b:
        return a is not EMPTY
    if isinstance(a, int):
        return a == b if isinstance(b, int) else a in b
    if isinstance(b, int):
        return b in a
    if isinstance(a, frozenset):
        return not a.isdisjoint(b) if isinstance(b, frozenset) else any(x in b for x in a)
    if isinstance(b, frozenset):
        return any(x in a for x in b)
    return any((c is d and c is not _NONE) or any_and(c, d) for c, d in zip(a.chunks, b.chunks, strict=False))


class Askable:
    """A ``BigSet`` in the form of `askable`; not iterable, so that no frozenset goes through all of it."""

    __slots__ = ("_locations",)

    def __init__(self, locations: BigSet) -> None:
        self._locations = locations

    def isdisjoint(self, other: frozenset[int] | Askable) -> bool:
        """Whether the two have no location in common."""
        return not intersects(self._locations, other._locations if isinstance(other, Askable) else other)


def askable(locations: LocationSet) -> frozenset[int] | Askable:
    """``locations`` in the form whose ``isdisjoint`` tells, in one call, whether sets meet.

    TypeError where a large set is the argument, and a small one is asked.
    """
    if isinstance(locations, int):
        return frozenset((locations,))
    return Askable(locations) if isinstance(locations, BigSet) else locations


class SetTable:
    """Makes sets, so that equal ones are one object.

    Attributes:
        unions: how many unions were computed, memoised ones not counted.
    """

    __slots__ = ("_big", "_chunks", "_memo", "_small", "unions")

    def __init__(self) -> None:
        self._small: dict[frozenset[int], frozenset[int]] = {EMPTY: EMPTY}
        self._big: dict[BigSet, BigSet] = {}
        self._chunks: dict[_Chunk, _Chunk] = {_NONE: _NONE}
        self._memo: dict[tuple[LocationSet, LocationSet], LocationSet] = {}
        self.unions = 0

    def of(self, locations: Iterable[int]) -> LocationSet:
        """The set of the given locations."""
        found = frozenset(locations)
        if len(found) == 1:
            return next(iter(found))
        if len(found) <= _SMALL:
            return self._small.setdefault(found, found)
        return self._with((), found, 0)

    def union(self, a: LocationSet, b: LocationSet) -> LocationSet:
        """All locations of both; ``a`` itself if ``b`` adds nothing."""
        if a is b or b is EMPTY:
            return a
        if a is EMPTY:
            return b
        # A union with one location is cheaper to compute than to look up.
        if isinstance(a, int):
            return self._union(b, a)
        if isinstance(b, int):
            return self._union(a, b)
        key = (a, b)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._union(a, b)
        return found

    def union_all(self, sets: Iterable[LocationSet]) -> LocationSet:
        """All locations of all of them. Makes no sets on the way that it does not return."""
        several = list(sets)
        if len(several) == 2:
            return self.union(several[0], several[1])
        single: set[int] = set()
        big: LocationSet = EMPTY
        for s in several:
            if isinstance(s, int):
                single.add(s)
            elif isinstance(s, frozenset):
                single |= s
            else:
                big = self.union(big, s)
        return self.union(big, self.of(single)) if isinstance(big, BigSet) else self.of(single)

    def difference(self, a: LocationSet, b: LocationSet) -> LocationSet:
        """The locations of ``a`` that are not in ``b``."""
        if a is b:
            return EMPTY
        return self.of(x for x in members(a) if not contains(b, x))

    def _union(self, a: LocationSet, b: LocationSet) -> LocationSet:
        self.unions += 1
        if isinstance(a, int):
            return a if a == b else self.of((a, *members(b)))
        if isinstance(b, int) and b in a:
            return a
        if isinstance(a, frozenset):
            if isinstance(b, int):
                return self.of((*a, b))
            if isinstance(b, frozenset):
                both = a | b
                return a if len(both) == len(a) else b if len(both) == len(b) else self.of(both)
            a, b = b, a
        if isinstance(b, BigSet):
            return self._both(a, b)
        new = [x for x in members(b) if x not in a]
        return self._with(a.chunks, new, a.size) if new else a

    def _both(self, a: BigSet, b: BigSet) -> LocationSet:
        if len(a.chunks) < len(b.chunks):
            a, b = b, a
        chunks = list(a.chunks)
        size = a.size
        for number, bits in enumerate(b.chunks):
            mine = chunks[number]
            if mine is not bits and bits is not _NONE:
                both = chunks[number] = bits if mine is _NONE else self._chunk(mine | bits)
                size += both.count() - mine.count()
        return a if size == a.size else self._intern(tuple(chunks), size)

    def _with(self, chunks: tuple[_Chunk, ...], new: Iterable[int], size: int) -> BigSet:
        """The set of ``size`` locations in ``chunks`` and the ``new`` ones, which are not among them."""
        changed: dict[int, bitarray] = {}
        for location in new:
            number, bit = divmod(location, _BITS)
            bits = changed.get(number)
            if bits is None:
                bits = changed[number] = bitarray(chunks[number] if number < len(chunks) else _NONE)
            bits[bit] = 1
            size += 1
        found = [*chunks, *[_NONE] * (max(changed) + 1 - len(chunks))]
        for number, bits in changed.items():
            found[number] = self._chunk(bits)
        return self._intern(tuple(found), size)

    def _chunk(self, bits: bitarray) -> _Chunk:
        chunk = frozenbitarray(bits)
        return self._chunks.setdefault(chunk, chunk)

    def _intern(self, chunks: tuple[_Chunk, ...], size: int) -> BigSet:
        found = BigSet(chunks, size)
        return self._big.setdefault(found, found)
