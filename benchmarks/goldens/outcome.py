"""What a program computes: its outputs as leaves, its counters, and whether later runs repeat the first one's bits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import irc

RUNS = 4
"""The first run finds shapes, the second plans memory, the third and fourth use the plan."""

COUNTERS = ("kernels", "in_place", "copies", "copied_bytes", "planned", "arena_bytes")
"""The counters that do not depend on threads or on time."""

Array = np.ndarray[Any, Any]
Leaves = dict[str, Any]
"""Path of a leaf, as ``y`` or ``y[0]`` -> an array, or a value that JSON has."""

Act = Callable[[irc.CompiledModel], tuple[Any, list[Any]]]
"""Runs a compiled model; returns its outputs, and the counters of each of its runs."""


@dataclass
class Outcome:
    """What a program did.

    Attributes:
        leaves: the outputs of the first run.
        counters: of the first run (``first.kernels``) and of the last one (``kernels``).
        unsteady: leaves of which a later run gave other bits.
        error: the error's code instead of all this.
    """

    leaves: Leaves = field(default_factory=dict[str, Any])
    counters: dict[str, int] = field(default_factory=dict[str, int])
    unsteady: list[str] = field(default_factory=list[str])
    error: str = ""


def outcome(model: Any, passes: str, act: Act) -> Outcome:
    """Compile a model and run it `RUNS` times."""
    result = Outcome()
    try:
        compiled = irc.compile(model, passes)
        for i in range(RUNS):
            with np.errstate(all="ignore"):
                outputs, counters = act(compiled)
            leaves = dict(_leaves(outputs, ""))
            if i == 0:
                result.leaves = {path: _kept(leaf) for path, leaf in leaves.items()}
                result.counters |= _total(counters, "first.")
            else:
                result.unsteady += [p for p in leaves.keys() | result.leaves.keys() if not _same(leaves, result, p)]
            result.counters |= _total(counters, "")
    except irc.Error as error:
        result.error = error.code
    except RecursionError:
        result.error = "RecursionError"
    result.unsteady = sorted(set(result.unsteady))
    return result


def _same(leaves: Leaves, result: Outcome, path: str) -> bool:
    if not (path in leaves and path in result.leaves):
        return False
    return fingerprint(leaves[path]) == fingerprint(result.leaves[path])


def _kept(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _total(counters: list[Any], prefix: str) -> dict[str, int]:
    """Counters of all runs together; those that this irc does not have are left out."""
    found = {name: [getattr(c, name) for c in counters if hasattr(c, name)] for name in COUNTERS}
    return {
        prefix + name: max(numbers) if name == "arena_bytes" else sum(numbers)
        for name, numbers in found.items()
        if numbers
    }


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        yield f"{path}.length", len(value)
        for i, item in enumerate(value):
            yield from _leaves(item, f"{path}[{i}]")
    elif isinstance(value, np.ndarray | np.generic):
        yield path, np.asarray(value)
    else:
        yield path, value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def plain_bytes(array: Array) -> bytes:
    """An array's elements as bytes in C order; strings as JSON."""
    if array.dtype.kind in "OSUT":
        return json.dumps([str(x) for x in array.ravel().tolist()]).encode()
    return np.ascontiguousarray(array).tobytes()


def dtype_of(name: str) -> np.dtype[Any]:
    """The dtype of a name, those of ml_dtypes included."""
    return np.dtype(getattr(ml_dtypes, name, name))


def fingerprint(leaf: Any) -> str:
    """Equal for leaves of equal type, shape and bits."""
    if not isinstance(leaf, np.ndarray):
        return f"{type(leaf).__name__} {leaf!r}"
    return f"{leaf.dtype.name}{list(leaf.shape)} {hashlib.sha256(plain_bytes(leaf)).hexdigest()}"
