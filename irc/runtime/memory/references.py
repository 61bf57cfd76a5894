"""Whether an object has other references, or an array other views, by Python's reference counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from irc.runtime.values import Array


def is_alone(holder: Mapping[Any, Any] | Sequence[Any], key: Any) -> bool:
    """Whether only ``holder`` refers to its item at ``key``."""
    return _count(holder, key) <= _ONE


def is_shown_alone(view: Array) -> bool:
    """Whether ``view`` is the only view of the array that it is a view of."""
    return _views(view) <= _ONE_VIEW


def _count(holder: Any, key: Any) -> int:
    return getrefcount(holder[key])


def _views(view: Array) -> int:
    return getrefcount(view.base)


_ONE = _count([object()], 0)
"""What Python counts for an object that one container refers to: versions differ in what asking adds."""

_ONE_VIEW = _views(np.empty(1)[:])
"""Likewise, of the array that one view has as its base."""
