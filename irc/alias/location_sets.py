"""Sets of memory locations.

Almost all elements of a real graph denote one location or two, a few denote
very many. So a set has one of three forms, by its size alone:

- one location: the plain ``int``;
- none, or up to 16: a ``frozenset``;
- more: a ``BigSet``, a tree whose leaves are ``bitarray``s.

Sets are hash-consed: equal ones are one object, so ``is`` compares them and
unions of them are memoised. So are the parts of trees, and their unions: in a
chain of sets that each add one location to the last, a new set, and its union
with one of another such chain, cost one leaf and the nodes above it, not a
copy. (A dense bitset an element would take 62 GB for a million singletons, and
n nests of loops have n sets of up to n locations.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from bitarray import bitarray
from bitarray.util import any_and

_SMALL = 16
_BITS = 2048
"""Bits a leaf: 256 bytes."""

_FAN_BITS = 5
"""A tree has at most 2 to this many parts."""

EMPTY: frozenset[int] = frozenset()


class BigSet:
    """More than 16 locations. Made only by ``SetTable``, once for equal ones: so identity is equality.

    Height 0 is a leaf, whose ``bits`` stand for locations 0 to 2,047. Of height
    h, the set has up to 32 ``parts`` of height h - 1 for equal ranges one after
    the other, in which locations are counted from their first; the last is not
    empty. A whole set has the smallest height that does.
    """

    __slots__ = ("bits", "height", "parts", "size")

    def __init__(self, height: int, size: int, parts: tuple[BigSet, ...], bits: bitarray) -> None:
        self.height = height
        self.size = size
        self.parts = parts
        self.bits = bits

    def __iter__(self) -> Iterator[int]:
        for base, leaf in self._leaves(0):
            for i in leaf.bits.search(_ONE):
                yield base + i

    def __len__(self) -> int:
        return self.size

    def __contains__(self, location: int) -> bool:
        tree = self
        while tree.height:
            number, location = divmod(location, _range(tree.height - 1))
            if number >= len(tree.parts):
                return False
            tree = tree.parts[number]
        return location < len(tree.bits) and bool(tree.bits[location])

    def _leaves(self, base: int) -> Iterator[tuple[int, BigSet]]:
        """The leaves, and the first location of each."""
        if not self.height:
            yield base, self
        for number, part in enumerate(self.parts):
            yield from part._leaves(base + number * _range(self.height - 1))

    def common(self, other: BigSet) -> Iterator[int]:
        """The locations that the two have in common. Parts that do not meet are not looked into."""
        pending = [(0, self, other)]
        while pending:
            base, a, b = pending.pop()
            # The lower tree has locations of the first part of the higher one only.
            while a.height < b.height:
                b = b.parts[0]
            while b.height < a.height:
                a = a.parts[0]
            if a.height:
                size = _range(a.height - 1)
                pending += [(base + i * size, x, y) for i, (x, y) in enumerate(zip(a.parts, b.parts)) if x.meets(y)]
            elif a.size and b.size:
                for i in (a.bits & b.bits).search(_ONE):
                    yield base + i

    def meets(self, other: BigSet) -> bool:
        """Whether the two have a location in common."""
        if self is other:
            return self.size > 0
        if not self.size or not other.size:
            return False
        if self.height != other.height:
            low, high = (self, other) if self.height < other.height else (other, self)
            return low.meets(high.parts[0])
        return any_and(self.bits, other.bits) if not self.height else any(map(BigSet.meets, self.parts, other.parts))


def _range(height: int) -> int:
    """How many locations a tree of ``height`` is for."""
    return _BITS << (_FAN_BITS * height)


LocationSet: TypeAlias = int | frozenset[int] | BigSet

_ONE = bitarray("1")
_NONE = BigSet(0, 0, (), bitarray())
"""The part without locations, of every height."""


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
    return a.meets(b)


def common(a: LocationSet, b: LocationSet) -> Iterable[int]:
    """The locations that are in both ``a`` and ``b``."""
    if isinstance(a, BigSet) and isinstance(b, BigSet):
        return a.common(b)
    if isinstance(b, int) or isinstance(a, BigSet):
        a, b = b, a
    return [x for x in members(a) if contains(b, x)]


class Askable:
    """A ``BigSet`` in the form of `askable`; not iterable, so that no frozenset iterates over all of it."""

    __slots__ = ("_locations",)

    def __init__(self, locations: BigSet) -> None:
        self._locations = locations

    def isdisjoint(self, other: frozenset[int] | Askable) -> bool:
        """Whether the two have no location in common."""
        return not intersects(self._locations, other._locations if isinstance(other, Askable) else other)


def askable(locations: LocationSet) -> frozenset[int] | Askable:
    """``locations`` in the form whose ``isdisjoint`` tells, in one call, whether sets meet.

    TypeError if ``isdisjoint`` of a small set is called with a large one.
    """
    if isinstance(locations, int):
        return frozenset((locations,))
    return Askable(locations) if isinstance(locations, BigSet) else locations


class SetTable:
    """Makes sets, so that equal ones are one object.

    Attributes:
        unions: how many unions were computed, memoised ones not counted.
    """

    __slots__ = ("_leaves", "_memo", "_small", "_trees", "unions")

    def __init__(self) -> None:
        self._small: dict[frozenset[int], frozenset[int]] = {EMPTY: EMPTY}
        self._leaves: dict[bytes, BigSet] = {}
        self._trees: dict[tuple[BigSet, ...], BigSet] = {}
        self._memo: dict[tuple[LocationSet, LocationSet], LocationSet] = {}
        self.unions = 0

    def of(self, locations: Iterable[int]) -> LocationSet:
        """The set of the given locations."""
        found = frozenset(locations)
        if len(found) == 1:
            return next(iter(found))
        if len(found) <= _SMALL:
            return self._small.setdefault(found, found)
        return self._with(_NONE, list(found))

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
        """The locations of ``a`` that are not in ``b``; ``a`` itself if those are all."""
        if not intersects(a, b):
            return a
        if not isinstance(a, BigSet):
            return self.of(x for x in members(a) if not contains(b, x))
        # Cut to the least height afterwards: equal sets must be one object.
        left = self._without(a, b if isinstance(b, BigSet) else self._with(_NONE, list(members(b))))
        while len(left.parts) == 1:
            left = left.parts[0]
        return left if left.size > _SMALL else self.of(left)

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
        return self._with(a, new) if new else a

    def _both(self, a: BigSet, b: BigSet) -> BigSet:
        """The union of two large sets, or of two parts of one height."""
        while a.height < b.height:
            a = self._tree((a,))
        while b.height < a.height:
            b = self._tree((b,))
        if not a.height:
            return self._leaf(_wide(a) | _wide(b))
        if len(a.parts) < len(b.parts):
            a, b = b, a
        parts = list(a.parts)
        for number, (x, y) in enumerate(zip(a.parts, b.parts, strict=False)):
            if x is not y and y is not _NONE:
                parts[number] = y if x is _NONE else self._part(x, y)
        return self._tree(tuple(parts))

    def _part(self, a: BigSet, b: BigSet) -> BigSet:
        """As `_both`, memoised."""
        found = self._memo.get((a, b))
        if found is None:
            found = self._memo[a, b] = self._both(a, b)
        assert isinstance(found, BigSet), "a part is one"
        return found

    def _without(self, a: BigSet, b: BigSet) -> BigSet:
        """What of a large set, or of a part of one, is not in another."""
        if not a.meets(b):
            return a
        while a.height < b.height:
            b = b.parts[0]
        while b.height < a.height:
            b = self._tree((b,))
        if not a.height:
            bits = a.bits & ~b.bits
            return self._leaf(bits) if bits.any() else _NONE
        parts = list(map(self._without, a.parts, b.parts)) + list(a.parts[len(b.parts) :])
        while parts and parts[-1] is _NONE:
            parts.pop()
        return self._tree(tuple(parts)) if parts else _NONE

    def _with(self, tree: BigSet, new: list[int]) -> BigSet:
        """The set of what is in ``tree`` and ``new`` locations."""
        most = max(new)
        if tree is _NONE:
            height = 0
            while most >= _range(height):
                height += 1
            return self._added(_NONE, height, new)
        # A new root has the old one as its first part, so locations keep their numbers.
        while most >= _range(tree.height):
            tree = self._tree((tree,))
        return self._added(tree, tree.height, new)

    def _added(self, tree: BigSet, height: int, new: list[int]) -> BigSet:
        """``tree``, of ``height`` if it is not empty, with ``new`` locations, counted from its first."""
        if not height:
            # A copy: all sets with these locations share the leaf.
            bits = bitarray(_wide(tree))
            for location in new:
                bits[location] = 1
            return self._leaf(bits)
        size = _range(height - 1)
        by_part: dict[int, list[int]] = {}
        for location in new:
            by_part.setdefault(location // size, []).append(location % size)
        parts = [*tree.parts, *[_NONE] * (max(by_part) + 1 - len(tree.parts))]
        for number, some in by_part.items():
            parts[number] = self._added(parts[number], height - 1, some)
        return self._tree(tuple(parts))

    def _leaf(self, bits: bitarray) -> BigSet:
        key = bits.tobytes()
        found = self._leaves.get(key)
        if found is None:
            found = self._leaves[key] = BigSet(0, bits.count(), (), bits)
        return found

    def _tree(self, parts: tuple[BigSet, ...]) -> BigSet:
        found = self._trees.get(parts)
        if found is None:
            found = BigSet(parts[-1].height + 1, sum([part.size for part in parts]), parts, _NONE.bits)
            self._trees[parts] = found
        return found


def _wide(leaf: BigSet) -> bitarray:
    return leaf.bits or bitarray(_BITS)


class SetIndex:
    """A multiset of location sets that finds those that meet a given set without looking at all of them.

    Small sets are found by their locations, so that one that comes or goes takes time by its size; large ones are
    looked at one by one, unless their union tells that none will do.
    """

    def __init__(self, table: SetTable) -> None:
        self._table = table
        self._counts: dict[LocationSet, int] = {}
        self._small_at: dict[int, dict[LocationSet, None]] = {}
        """Location -> the small sets with it, but for that of this location alone."""
        self._large: dict[LocationSet, None] = {}
        self._union: LocationSet | None = EMPTY
        """All locations of large sets; None when a large set has gone and nobody has asked since."""

    def add(self, locations: LocationSet) -> None:
        """Add a set once more."""
        count = self._counts[locations] = self._counts.get(locations, 0) + 1
        if count > 1 or isinstance(locations, int):
            return
        if isinstance(locations, frozenset):
            for x in locations:
                self._small_at.setdefault(x, {})[locations] = None
            return
        self._large[locations] = None
        if self._union is not None:
            self._union = self._table.union(self._union, locations)

    def remove(self, locations: LocationSet) -> bool:
        """Remove a set that was added. Returns whether that was the last time."""
        left = self._counts[locations] - 1
        if left:
            self._counts[locations] = left
            return False
        del self._counts[locations]
        if isinstance(locations, frozenset):
            for x in locations:
                there = self._small_at[x]
                del there[locations]
                if not there:
                    del self._small_at[x]
        elif not isinstance(locations, int):
            del self._large[locations]
            self._union = None
        return True

    def take(self, locations: Sequence[int]) -> list[LocationSet]:
        """Remove the sets that have any of ``locations``, and return them."""
        counts, small = self._counts, self._small_at
        found: list[LocationSet] = [x for x in locations if x in counts]
        if small:
            found += dict.fromkeys(s for x in locations for s in small.get(x, ()))
        if self._large and locations:
            some = self._table.of(locations)
            if intersects(self._all_large(), some):
                found += [s for s in self._large if intersects(s, some)]
        for taken in found:
            while not self.remove(taken):
                pass
        return found

    def meets(self, locations: LocationSet) -> bool:
        """Whether any set meets ``locations``."""
        if self._large and intersects(self._all_large(), locations):
            return True
        counts, small = self._counts, self._small_at
        if isinstance(locations, int) or len(locations) <= len(counts):
            return any(x in counts or x in small for x in members(locations))
        return any(intersects(s, locations) for s in counts)

    def _all_large(self) -> LocationSet:
        if self._union is None:
            self._union = self._table.union_all(self._large)
        return self._union

    def meeting(self, locations: LocationSet) -> Iterator[LocationSet]:
        """The sets that meet ``locations``."""
        if isinstance(locations, BigSet) and len(locations) > len(self._counts):
            yield from (s for s in self._counts if intersects(s, locations))
            return
        counts, small = self._counts, self._small_at
        yield from (x for x in members(locations) if x in counts)
        yield from dict.fromkeys(s for x in members(locations) for s in small.get(x, ()))
        yield from (s for s in self._large if intersects(s, locations))

    def ways(self, locations: LocationSet) -> int:
        """How many sets may have to be looked at to find those that meet ``locations``."""
        if isinstance(locations, BigSet):
            return min(len(self._counts), len(self._large) + len(locations))
        small = self._small_at
        return len(self._large) + sum([1 + len(small[x]) if x in small else 1 for x in members(locations)])
