"""Refusing operands of kinds that torch's operators do not take: torch raises there, NumPy may compute nonsense.

Tags of schema rows list the kinds (`irc.ops.tags`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irc.errors import Error
from irc.ir.types import Type
from irc.ops import records
from irc.runtime.kernels.registry import Kernel, takes_out
from irc.runtime.kernels.support import AnyDType, Array
from irc.runtime.values import is_array

# Kinds are NumPy's characters: b of bool, u and i of integers, f of floats (V of bfloat16 and smaller), c of complex.


def _refused(taken: Mapping[str, str]) -> dict[str, str]:
    return {name: "".join(set("buifVc") - set(kinds.replace("f", "fV"))) for name, kinds in taken.items()}


REFUSED_FIRST = _refused(
    {each.name: each.takes for each in records("aten") if each.takes}
    | {f"{each.name}_": each.in_place for each in records("aten") if each.in_place}
)
"""Kinds that the first operand must not be of."""

REFUSED_COMMON = _refused({each.name: each.takes_both for each in records("aten") if each.takes_both})
"""Kinds that the type must not be of that two operands have in common."""

_RANKS = {kind: rank for rank, kinds in enumerate(("b", "ui", "fV", "c")) for kind in kinds}
_WORDS = {"b": "bools", **dict.fromkeys("ui", "integers"), **dict.fromkeys("fV", "floats"), "c": "complex numbers"}
_NUMBERS: dict[Any, str] = {bool: "b", int: "i", float: "f", complex: "c"}


def refusing(name: str, run: Kernel, types: Sequence[Type] = ()) -> Kernel:
    """``run``, or a kernel that refuses the kinds of operands that torch's operator ``name``, or its twin, refuses.

    No check is made at run time if ``types``, those of the arguments, show that the kinds are taken.
    """
    for table, count, checked in ((REFUSED_FIRST, 1, _refusing_first), (REFUSED_COMMON, 2, _refusing_common)):
        refused = table.get(name) or table.get(name.removesuffix("_"), "")
        is_known = types and all(_is_taken(type, refused) for type in types[:count])
        if refused and not is_known:
            run = checked(name, refused, run)
    return run


def takes_floats(name: str) -> bool:
    """Whether torch's operator ``name`` takes floats."""
    return all("f" not in table.get(name, "") for table in (REFUSED_FIRST, REFUSED_COMMON))


def _is_taken(type: Type, refused: str) -> bool:
    return type.dtype is not None and type.dtype.numpy.kind not in refused


def check_kind(name: str, dtype: AnyDType, computed_by: str | None = None) -> None:
    """Error IRC423 if torch's operator ``name`` refuses a first operand of ``dtype``.

    ``computed_by``: the operator by which torch computes it, and whose row tells, if ``name``'s own does not.
    """
    if dtype.kind in REFUSED_FIRST[computed_by or name]:
        raise _error(name, dtype.kind)


def _refusing_first(name: str, refused: str, run: Kernel) -> Kernel:
    def check(arguments: Sequence[Any]) -> None:
        dtype = getattr(arguments[0], "dtype", None)
        if dtype is not None and dtype.kind in refused:
            raise _error(name, dtype.kind)

    return _checked(check, run)


def _refusing_common(name: str, refused: str, run: Kernel) -> Kernel:
    def check(arguments: Sequence[Any]) -> None:
        for x in arguments[:2]:
            dtype = getattr(x, "dtype", None)
            if dtype is not None and dtype.kind in refused:
                common = max(map(_kind, arguments[:2]), key=_RANKS.__getitem__)
                if common in refused:
                    raise _error(name, common)

    return _checked(check, run)


def _checked(check: Callable[[Sequence[Any]], None], run: Kernel) -> Kernel:
    def checked(*arguments: Any) -> Any:
        check(arguments)
        return run(*arguments)

    def checked_into(*arguments: Any, out: Array | None = None) -> Any:
        check(arguments)
        return run(*arguments, out=out)

    return checked_into if takes_out(run) else checked


def _kind(x: Any) -> str:
    return x.dtype.kind if is_array(x) else _NUMBERS.get(type(x), "b")


def _error(name: str, kind: str) -> Error:
    return Error("IRC423", f"aten::{name} is not defined on {_WORDS[kind]}; convert them first")
