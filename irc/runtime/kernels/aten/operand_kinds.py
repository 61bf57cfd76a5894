"""Refusing operands of kinds that torch's operators do not take: torch raises there, NumPy may compute nonsense.

Tags of schema rows list the kinds (`irc.ops.tags`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irc.errors import Error
from irc.ir.types import Type
from irc.ops import record
from irc.runtime.kernels.registry import Kernel, takes_out
from irc.runtime.kernels.support import AnyDType, Array
from irc.runtime.values import is_array

# Kinds are NumPy's characters: b of bool, u and i of integers, f of floats (V of bfloat16 and smaller), c of complex.


_RANKS = {kind: rank for rank, kinds in enumerate(("b", "ui", "fV", "c")) for kind in kinds}
_WORDS = {"b": "bools", **dict.fromkeys("ui", "integers"), **dict.fromkeys("fV", "floats"), "c": "complex numbers"}
_NUMBERS: dict[Any, str] = {bool: "b", int: "i", float: "f", complex: "c"}


def refusing(name: str, run: Kernel, types: Sequence[Type] = ()) -> Kernel:
    """``run``, or a kernel that refuses the kinds of operands that torch's operator ``name`` refuses.

    No check is made at run time if ``types``, those of the arguments, show that the kinds are taken.
    """
    for refused, count, checked in zip(refused_kinds(name), (1, 2), (_refusing_first, _refusing_common), strict=True):
        is_known = types and all(_is_taken(type, refused) for type in types[:count])
        if refused and not is_known:
            run = checked(name, refused, run)
    return run


def refused_kinds(name: str) -> tuple[str, str]:
    """The kinds that torch's operator ``name`` refuses: of the first operand, and of what two have in common."""
    operator = record(f"aten::{name}")
    return _others(operator.takes), _others(operator.takes_both)


def _others(taken: str) -> str:
    return "".join(kind for kind in "buifVc" if kind not in taken.replace("f", "fV")) if taken else ""


def takes_floats(name: str) -> bool:
    """Whether torch's operator ``name`` takes floats."""
    return all("f" not in refused for refused in refused_kinds(name))


def _is_taken(type: Type, refused: str) -> bool:
    return type.dtype is not None and type.dtype.numpy.kind not in refused


def check_kind(name: str, dtype: AnyDType, computed_by: str | None = None) -> None:
    """Error IRC423 if torch's operator ``name`` refuses a first operand of ``dtype``.

    ``computed_by``: the operator by which torch computes it, and whose row tells, if ``name``'s own does not.
    """
    if dtype.kind in refused_kinds(computed_by or name)[0]:
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
