"""What is known of a kind of node that has an alias rule of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from irc.alias.recorder import Rule
from irc.ir.node import Node


def always(node: Node) -> bool:
    """Yes, whatever node it is."""
    return True


def never(node: Node) -> bool:
    """No, whatever node it is."""
    return False


class Entry(NamedTuple):
    """All that is said of one kind.

    Attributes:
        rule: what its nodes do to memory; None: they write nothing and all their outputs are fresh.
        writes: whether they, not those in their blocks and subgraphs, may write what they are given.
        keeps: whether a node itself may have stored into, or let escape, something that outlives it.
    """

    rule: Rule | None
    writes: bool = False
    keeps: Callable[[Node], bool] = never
