"""Schema rows as text: an overload a line, with tags after a bar for what else is known of the operator.

====================  ================================================================================================
``pointwise``         on tensors, which broadcast as in NumPy, each element of the result depends on the one at its
                      place in each operand; the shape rule is the operator's own
``pointwise=RULE``    likewise, and this tells the result's element type, which is all that a shape rule needs:
                      ``common``, that of the operands; ``float``, that one, or float32 if it is bools' or integers';
                      ``bool``; ``first``, that of the first operand; ``first-if-float``, that one, if it is floats';
                      ``wider``, another one even if all operands have one float type: the shape rule tells which
``takes=KINDS``       the kinds of element types that the first operand may have
``takes-both=KINDS``  those that the type may be of that the first two operands have in common
``in-place``          ``X_`` takes what ``X`` takes and writes the result into the first operand: it needs no row
``in-place=KINDS``    likewise, but the first operand of ``X_`` must be of these kinds
``out=any``           of this row: the result is converted to the element type of a tensor given as ``out=``, if results
                      in place are (no float into integers); else it must have it
``out=dtype``         of this row: the argument ``dtype`` is the element type of ``out`` if it is not given
``out=none``          no overload takes ``out=``
``copied``            of this row of a view: ``X_copy`` takes what ``X`` takes and gives what ``X`` shows, in memory of
                      its own: it needs no row
``layout=WORDS``      how it treats memory layouts; several words are separated by ``+``:
                      ``seen``, it gives something else, or fails, if an operand lies otherwise;
                      ``view-or-copy``, its result shares memory with the first operand or not, as its layout has it;
                      ``anew``, its result lies in one way, however its operands do;
                      ``contiguous``, its result is contiguous, unless it is given a memory format;
                      ``like-first``, its result lies as the first operand does, without its gaps, unless it is given
                      a memory format;
                      ``in-order``, its result is contiguous if the first operand is: a view, or a copy;
                      ``part``, likewise, if it shows a part along the first dimension with steps of 1;
                      ``varies``, it is pointwise, but its result may be contiguous where the operand is not;
                      ``gaps``, its result is memory of its own that may have gaps, and begin with one
====================  ================================================================================================

Those that are not of a row are of the operator, whichever of its rows has them. Kinds are NumPy's characters: ``b`` of
bool, ``u`` and ``i`` of integers, ``f`` of floats, ``c`` of complex numbers. An operator without such a tag takes all
kinds, or its kernel tells. Empty lines, and those that begin with ``#``, say nothing. A line with words in braces, as
in ``aten::{sin cos}(Tensor self) -> Tensor``, is a row for each of them, which ``{}`` behind repeats. ``{options}``
stands for the options of operators that make tensors, ``{like}`` for these and the memory format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from irc.ops.record import Operator, kind_of

_BAR = " | "

_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_ABBREVIATIONS = (("{like}", "{options}, MemoryFormat? memory_format=None"), ("{options}", _OPTIONS))

_WORDS = re.compile(r"(.*)\{(\w+(?: \w+)+)\}(.*)")  # the last ones in braces

_FIELDS = {
    "pointwise": "result_type",
    "takes": "takes",
    "takes-both": "takes_both",
    "in-place": "in_place",
    "copied": "copied",
    "out": "out",
    "layout": "layout",
}
"""Tag -> the field of the record that its value is."""


def statements(text: str) -> Iterator[Operator]:
    """What the rows in ``text`` state, one by one; ValueError for an unknown tag."""
    for abbreviation, meaning in _ABBREVIATIONS:
        text = text.replace(abbreviation, meaning)
    lines = [each for each in map(str.strip, text.splitlines()) if each and not each.startswith("#")]
    for line in (row for each in lines for row in _rows(each)):
        row, _, words = line.partition(_BAR)
        facts: dict[str, Any] = {}
        for word in words.split():
            tag, _, value = word.partition("=")
            if tag not in _FIELDS:
                raise ValueError(f"there is no tag {tag!r}: {line}")
            if _FIELDS[tag] in facts:
                raise ValueError(f"the tag {tag!r} is there twice: {line}")
            facts[_FIELDS[tag]] = _field(tag, value, row)
        yield Operator(kind_of(row), (row,), **facts)


def _rows(line: str) -> Iterator[str]:
    """``line`` for each of the words in braces."""
    found = _WORDS.fullmatch(line)
    if found is None:
        yield line
        return
    before, words, after = found.groups()
    for word in words.split():
        yield from _rows(f"{before}{word}{after.replace('{}', word)}")


def _field(tag: str, value: str, row: str) -> Any:
    name = row.partition("(")[0]
    if tag in ("copied", "out"):
        return {name: value} if tag == "out" else (name,)
    return frozenset(value.split("+")) if tag == "layout" else value
