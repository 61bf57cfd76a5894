"""Which operators change more of an existing tensor than its elements: its shape and strides, or the memory it shows.

Other operators that write a tensor, those that other packages register too, leave its metadata as it is.
"""

from __future__ import annotations

from enum import IntEnum


class Change(IntEnum):
    """What a write changes of the tensors in the memory that it writes; each includes those before it."""

    ELEMENTS = 0
    """Elements only, or what a container holds."""
    SHAPE = 1
    """Shape and strides of a tensor, which then shows the same elements."""
    MEMORY = 2
    """Which part of its storage a tensor shows, or which storage."""


CHANGES_METADATA = {
    **{f"aten::{name}_": Change.SHAPE for name in "squeeze t transpose unsqueeze".split()},
    **{f"aten::{name}_": Change.MEMORY for name in "as_strided resize resize_as set".split()},
}
"""Operators that give an existing tensor other metadata, and how much they may change. (Nodes never have the other
names of these, such as ``swapaxes_``: `irc.ir.synonyms`.)"""


def change_of(kind: str) -> Change:
    """How much nodes of ``kind``, if that is a known operator, change of the tensors that they write."""
    return CHANGES_METADATA.get(kind, Change.ELEMENTS)
