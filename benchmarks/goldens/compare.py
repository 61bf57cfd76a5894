"""How what a program does differs from what was recorded: bits, errors, counters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.goldens.outcome import Array, Outcome, fingerprint
from benchmarks.goldens.store import Reader

NEVER_MORE = ("copies", "copied_bytes", "first.copies", "first.copied_bytes")
"""Counters that may fall, not rise."""

BOUNDS = {"light": 256.0, "zoo": 256.0, "decoders": 256.0, "small": 64.0}
"""Set -> how far results may move, in eps of their type times max|ref|: deep models round often. `BOUND` for others."""

BOUND = 16.0


@dataclass
class Difference:
    """What differs for one program run in one way.

    Attributes:
        name: the program, the pipeline and the way.
        faults: what must not be: other shapes, errors beyond the bound, runs that differ, more copies.
        errors: leaf -> (ulp, relative to max|ref|), where bits differ within the bound.
        counters: counter -> (before, after), where they differ.
    """

    name: str
    faults: list[str] = field(default_factory=list[str])
    errors: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    counters: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


def difference(reader: Reader, name: str, inputs: str, after: Outcome, bound: float | None = None) -> Difference:
    """Compare an outcome with what was recorded under its name; ``bound``: instead of that of the set."""
    found = Difference(name)
    before = reader.outcomes.get(name)
    if before is None:
        found.faults.append("was not recorded")
        return found
    if before["inputs"] != inputs:
        found.faults.append("its inputs are not those that were recorded")
        return found
    if before["error"] != after.error:
        found.faults.append(f"{before['error'] or 'ran'} before, {after.error or 'runs'} now")
        return found
    known = set(before["unsteady"])
    found.faults += [f"{path}: runs give different bits" for path in after.unsteady if path not in known]
    eps = (BOUNDS.get(name.partition("/")[0], BOUND)) if bound is None else bound
    for path in dict.fromkeys((*before["leaves"], *after.leaves)):
        if path not in known:
            _compare_leaf(reader, before["leaves"].get(path), path, after, eps, found)
    for counter, was in before["counters"].items():
        now = after.counters.get(counter, was)
        if now != was:
            found.counters[counter] = was, now
        if counter in NEVER_MORE and now > was:
            found.faults.append(f"{counter}: {was:,} before, {now:,} now")
    return found


def _compare_leaf(reader: Reader, entry: Any, path: str, after: Outcome, eps: float, found: Difference) -> None:
    if entry is None or path not in after.leaves:
        found.faults.append(f"{path}: {'is new' if entry is None else 'is missing'}")
        return
    leaf = after.leaves[path]
    if entry["digest"] == fingerprint(leaf):
        return
    before = reader.array(entry) if "dtype" in entry else None
    if not isinstance(leaf, np.ndarray) or before is None:
        found.faults.append(f"{path}: {entry.get('value', 'other bits')}, now {_shown(leaf)}")
    elif (before.dtype, before.shape) != (leaf.dtype, leaf.shape):
        found.faults.append(f"{path}: {before.dtype}{list(before.shape)}, now {leaf.dtype}{list(leaf.shape)}")
    elif not is_inexact(leaf):
        found.faults.append(f"{path}: {np.count_nonzero(before != leaf)} of {leaf.size} elements differ")
    else:
        ulp, relative = errors(before, leaf)
        found.errors[path] = ulp, relative
        if not relative <= eps * float(ml_dtypes.finfo(leaf.dtype).eps):
            found.faults.append(f"{path}: {ulp:.3g} ulp, {relative:.2g} relative to max|ref|")


def _shown(leaf: Any) -> str:
    return "other bits, of which no values were kept" if isinstance(leaf, np.ndarray) else repr(leaf)


def is_inexact(array: Array) -> bool:
    """Whether its elements are floats of more than a byte, or complex."""
    return array.dtype.kind in "fc" or array.dtype == ml_dtypes.bfloat16


def errors(before: Array, after: Array) -> tuple[float, float]:
    """The largest difference of elements in ulp of the first, and relative to its largest finite element.

    Infinite where one has a NaN, or an infinity, and the other does not.
    """
    exact = np.float64 if before.dtype.kind != "c" else np.complex128
    info = ml_dtypes.finfo(before.dtype)
    with np.errstate(all="ignore"):
        a, b = (
            np.asarray(x).astype(exact).view(np.float64).reshape(-1) for x in map(np.ascontiguousarray, (before, after))
        )
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if not (np.isfinite(a) & np.isfinite(b) | same).all():
            return np.inf, np.inf
        finite = np.isfinite(a)
        off = np.where(same, 0.0, np.abs(a - b))
        least = float(info.tiny)  # smaller numbers are subnormal, and as far apart as this one and the next
        ulp = np.ldexp(1.0, np.frexp(np.maximum(np.where(finite, np.abs(a), 0), least))[1] - 1 - info.nmant)
        largest = max(np.abs(a[finite]).max(initial=0.0), least)
        return float((off / ulp).max(initial=0.0)), float(off.max(initial=0.0) / largest)


def lines(found: Difference) -> Iterator[str]:
    """What to print of a difference; nothing if there is none."""
    for fault in found.faults:
        yield f"  FAULT {fault}"
    if found.errors:
        ulp, relative = max(e[0] for e in found.errors.values()), max(e[1] for e in found.errors.values())
        yield f"  {len(found.errors)} outputs differ, by at most {ulp:.3g} ulp, {relative:.2g} relative to max|ref|"
    if found.counters:
        yield "  " + ", ".join(f"{name} {was:,} -> {now:,}" for name, (was, now) in found.counters.items())
