"""What rows say of operators besides the signature: tags, after a bar at the end of a row.

====================  ================================================================================================
``pointwise``         on tensors, which broadcast as in NumPy, each element of the result depends on the one at its
                      place in each operand; the shape rule is the operator's own
``pointwise=RULE``    likewise, and this tells the result's element type, which is all that a shape rule needs:
                      ``common``, that of the operands; ``float``, that one, or float32 if it is bools' or integers';
                      ``bool``; ``first``, that of the first operand; ``first-if-float``, that one, if it is floats'
``takes=KINDS``       the kinds of element types that the first operand may have
``takes-both=KINDS``  those that the type may be of that the first two operands have in common
``in-place``          ``X_`` takes what ``X`` takes and writes the result into the first operand: it needs no row
``in-place=KINDS``    likewise, but the first operand of ``X_`` must be of these kinds
``out=any``           of this row: the result is converted to the element type of a tensor given as ``out=``, if results
                      in place are (no float into integers); else it must have it
``out=dtype``         of this row: the argument ``dtype`` is the element type of ``out`` if it is not given
``out=none``          no overload takes ``out=``
====================  ================================================================================================

Those that are not of a row are of the operator, whichever of its rows has them. Kinds are NumPy's characters: ``b`` of
bool, ``u`` and ``i`` of integers, ``f`` of floats, ``c`` of complex numbers. An operator without such a tag takes all
kinds, or its kernel tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

_BAR = " | "


class Tags(NamedTuple):
    """The tags of rows: name of the operator (for ``out``, of the row) without ``aten::`` -> the value after ``=``."""

    pointwise: dict[str, str]
    takes: dict[str, str]
    takes_both: dict[str, str]
    in_place: dict[str, str]
    out: dict[str, str]

    def with_out(self, value: str) -> Iterator[str]:
        """The names, with namespace, of the rows that have the tag ``out=value``."""
        return (f"aten::{row}" for row, out in self.out.items() if out == value)


def without_tags(rows: str) -> str:
    """``rows``, one a line, as PyTorch writes them."""
    return "\n".join(line.partition(_BAR)[0] for line in rows.splitlines())


def tags_of(rows: Iterable[str]) -> Tags:
    """The tags in ``rows``, texts of many lines. ValueError for an unknown tag, or the same tag twice for one name."""
    tags = Tags({}, {}, {}, {}, {})
    for line in (line for many in rows for line in many.splitlines() if _BAR in line):
        signature, _, words = line.partition(_BAR)
        row = signature.partition("(")[0].strip().removeprefix("aten::")
        for word in words.split():
            tag, _, value = word.partition("=")
            field = tag.replace("-", "_")
            if field not in Tags._fields:
                raise ValueError(f"there is no tag {tag!r}: {line}")
            said: dict[str, str] = getattr(tags, field)
            name = row if tag == "out" else row.partition(".")[0]
            if name in said:
                raise ValueError(f"{name} has the tag {tag!r} twice: {line}")
            said[name] = value
    return tags
