"""Einstein's summation convention: which axes an equation names, and the shape of its result."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irc.ir.types import Dim, Shape
    from irc.ops.inference import NodeTypes

_EQUATION = re.compile(r"{term}(,{term})*(->{term})?".replace("{term}", r"[A-Za-z]*(\.\.\.[A-Za-z]*)?"))

Axis = str | int
"""A letter; or, of those that '...' stands for, the number from the last."""


def is_equation(text: str) -> bool:
    """Whether ``text``, which has no blanks, is an equation."""
    return _EQUATION.fullmatch(text) is not None


def axes_of(equation: str, ranks: Sequence[int], sums_ellipsis: bool = False) -> tuple[list[list[Axis]], list[Axis]]:
    """The axes of operands with these ``ranks``, and of the result; ValueError if they do not fit the equation.

    Where a result that is given lacks an ellipsis that terms have, torch sums over its axes (``sums_ellipsis``);
    ONNX calls it an error.
    """
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"it has {len(terms)} terms for {len(ranks)} operands")
    named = [_axes(term, rank) for term, rank in zip(terms, ranks, strict=True)]
    letters = Counter(axis for axes in named for axis in axes if isinstance(axis, str))
    dots = range(min((axis for axes in named for axis in axes if isinstance(axis, int)), default=0), 0)
    if not arrow:
        return named, [*dots, *sorted(letter for letter, n in letters.items() if n == 1)]
    wanted, has_dots = result.replace("...", ""), "..." in result
    is_dropped = bool(dots) and not has_dots
    if len(set(wanted)) != len(wanted) or not set(wanted) <= letters.keys() or (is_dropped and not sums_ellipsis):
        raise ValueError("the result must name letters of the terms, each once, and '...' if they have it")
    return named, _axes(result, len(wanted) + (len(dots) if has_dots else 0))


def _axes(term: str, rank: int) -> list[Axis]:
    head, dots, tail = term.partition("...")
    rest = rank - len(head) - len(tail)
    if rest < 0 or (rest and not dots):
        raise ValueError(f"term {term!r} names {len(head) + len(tail)} axes of {rank}")
    return [*head, *range(-rest, 0), *tail]


def einsum_shape(
    types: NodeTypes, equation: str, shapes: Sequence[Shape | None], sums_ellipsis: bool = False
) -> Shape | None:
    """The shape of the result of ``equation`` for operands of ``shapes``; an axis of size 1 matches any size."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or not is_equation(equation):
        return None
    try:
        terms, result = axes_of(equation, [len(shape) for shape in known], sums_ellipsis)
    except ValueError as error:
        types.fail(f"the equation {equation!r} does not fit the operands: {error}")
    sizes: dict[Axis, Dim] = {}
    for axes, shape in zip(terms, known, strict=True):
        for axis, size in zip(axes, shape, strict=True):
            together = types.broadcast([(sizes.get(axis, 1),), (size,)])
            (sizes[axis],) = together or (None,)
    return tuple(sizes[axis] for axis in result)
