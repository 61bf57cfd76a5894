"""What types may be made of: they are not checked when they are made."""

from __future__ import annotations

from irc.ir.limits import MAX_TYPE_DEPTH
from irc.ir.types import TensorType, Type, tensor_fault


def type_fault(type: Type, depth: int = 1) -> str | None:
    """What is wrong with ``type``, which is nested ``depth`` levels deep, itself included; None if nothing is."""
    if not isinstance(type, Type):  # type: ignore[reportUnnecessaryIsInstance]
        return f"a type is one of irc.ir.types, not {type!r}"
    if isinstance(type, TensorType):
        return tensor_fault(type)
    if depth > MAX_TYPE_DEPTH:
        return f"types nest at most {MAX_TYPE_DEPTH} levels deep"
    faults = (type_fault(part, depth + 1) for part in type.inner)
    return next((fault for fault in faults if fault is not None), None)
