"""Whether anybody else has an object, by Python's count of references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import getrefcount
from typing import Any


def is_alone(holder: Mapping[Any, Any] | Sequence[Any], key: Any) -> bool:
    """Whether ``holder`` alone refers to what it has at ``key``."""
    return _count(holder, key) <= _ONE


def _count(holder: Any, key: Any) -> int:
    return getrefcount(holder[key])


_ONE = _count([object()], 0)
"""What Python counts for an object that one container refers to: versions differ in what asking adds."""
