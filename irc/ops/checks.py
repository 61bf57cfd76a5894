"""Checks of the specification beyond types: attributes, and operands' ranks, sizes and constants.

Records hold such checks. They are made before the shape rule of a node, as far as enough is known then: a run finds the
rest. Other runtimes refuse models with such nodes when they load them. (Attributes that must be one of several values
are a field of their own.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from irc.ir.limits import MAX_RANK
from irc.ops.inference import NodeTypes
from irc.ops.record import Check

# -- attributes ------------------------------------------------------------------


def attributes(allowed: Callable[[int], bool], words: str, *names: str) -> Check:
    """Each of the attributes, a number or a list of numbers, is ``allowed``; those that are left out are."""

    def check(c: NodeTypes) -> None:
        for name in names:
            value: Any = c.attr(name)
            numbers = cast("list[int]", [] if value is None else value if isinstance(value, list) else [value])
            for number in numbers:
                if not allowed(number):
                    c.fail(f"{name} must be {words}, not {value}")

    return check


def flags(*names: str) -> Check:
    return attributes((0, 1).__contains__, "0 or 1", *names)


def positive(*names: str) -> Check:
    return attributes(lambda n: n > 0, "positive", *names)


def not_negative(*names: str) -> Check:
    return attributes(lambda n: n >= 0, "0 or more", *names)


# -- operands --------------------------------------------------------------------


def rank(name: str, at: int, *ranks: int) -> Check:
    """Operand ``at``, called ``name``, has one of these numbers of dimensions."""

    def check(c: NodeTypes) -> None:
        shape = c.shape(at)
        if shape is not None and len(shape) not in ranks:
            c.fail(f"{name} must have {' or '.join(map(str, ranks))} dimensions, not {len(shape)}")

    return check


def size(c: NodeTypes, name: str, at: int, wanted: Any, why: str) -> None:
    """Fail, for the reason ``why``, if operand ``at`` has one dimension that cannot be ``wanted``."""
    shape = c.shape(at)
    if shape is None or len(shape) != 1:
        return
    if isinstance(shape[0], int) and isinstance(wanted, int) and shape[0] != wanted:
        c.fail(f"{name} has {shape[0]} elements for {why}")


def elements(name: str, at: int, count: int) -> Check:
    """Check that operand ``at`` has this number of elements."""

    def check(c: NodeTypes) -> None:
        sizes = c.tensor(at).static_shape
        if sizes is None:
            return
        found = 1
        for size in sizes:
            found *= size
        if found != count:
            c.fail(f"{name} must have {count} element{'s' * (count > 1)}, not {found}")

    return check


def by_channel(*operands: tuple[str, int]) -> Check:
    """Each operand has one element for each channel of the first."""

    def check(c: NodeTypes) -> None:
        x = c.shape(0)
        for name, at in operands:
            rank(name, at, 1)(c)
            if x is not None and len(x) > 1:
                size(c, name, at, x[1], f"{x[1]} channels")

    return check


def at_least(name: str, at: int, least: int) -> Check:
    """All elements of operand ``at`` that are known are at least so large."""

    def check(c: NodeTypes) -> None:
        for number in c.numbers(at) or ():
            if isinstance(number, int) and number < least:
                c.fail(f"{name} must be {least} or more, not {number}")

    return check


def axis(at: int, of: int = 0) -> Check:
    """Operand ``at`` is one axis of operand ``of``."""

    def check(c: NodeTypes) -> None:
        elements("the axis", at, 1)(c)
        numbers, x = c.ints(at) if c.has(at) else None, c.shape(of)
        if numbers:
            c.axis(numbers[0], MAX_RANK if x is None else len(x))

    return check


def axes(c: NodeTypes, axes: Sequence[int] | None, rank: int) -> None:
    """Fail if some axis is out of range, or there twice."""
    seen: set[int] = set()
    for axis in axes or ():
        found = c.axis(axis, rank)
        if found in seen:
            c.fail(f"axis {found} is given twice")
        seen.add(found)


def lengths(c: NodeTypes, count: int, *names: str) -> None:
    """Fail unless each of the attributes, as far as given, has ``count`` numbers, and pads twice as many."""
    for name, wanted in (*((name, count) for name in names), ("pads", 2 * count)):
        value = c.attr(name)
        if value is not None and len(value) != wanted:
            c.fail(f"{name} must have {wanted} entries, has {len(value)}")
