"""The sizes of named dimensions whose names are formulas: exporters name one ``past + new``, or ``2*n``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from irc.ir.limits import MAX_SIZE

_OPERATOR = re.compile(r"\s*(//|[-+*/])\s*")
_NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)


def computed_size(name: str, sizes: Mapping[str, int]) -> int | None:
    """The value of ``name``: a sum or difference of products and whole quotients of numbers and names in ``sizes``.

    None if it is anything else, such as a name of its own, or its value cannot be a size.
    """
    operands, operators = _OPERATOR.split(name.strip())[::2], _OPERATOR.findall(name)
    values = [int(x) if _NUMBER.fullmatch(x) else sizes.get(x) for x in operands]
    known = [value for value in values if value is not None]
    if not operators or len(known) < len(values):
        return None
    total, sign, product = 0, 1, known[0]
    for operator, value in zip(operators, known[1:], strict=True):
        if operator in "+-":
            total += sign * product
            sign, product = (1 if operator == "+" else -1), value
        elif operator == "*":
            product *= value
        elif value:
            product //= value
        else:
            return None
        if product > MAX_SIZE:
            return None
    total += sign * product
    return total if 0 <= total <= MAX_SIZE else None
