"""How far two results may be apart, and how far they are."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from irc.compiler import load_module
from irc.errors import Error
from irc.ir.kinds import CONSTANT
from irc.ir.region_flow import with_subgraphs
from irc.ir.types import DType
from irc.passes import PassManager
from irc.passes.shapes import ShapeInference
from irc.runtime.values import Array, is_mapping, is_sequence

_LAST_PLACE: dict[DType | None, float] = {DType.FLOAT16: 2.0**-10, DType.BFLOAT16: 2.0**-7}
"""What the last place of numbers in half precision is, of the number."""


class Tolerance(NamedTuple):
    """How far a result may be off: ``rtol`` of each element plus ``atol`` of the largest one.

    Integers must be equal. Numbers of ``rounded`` bits and less (quantised ones) may be off by their last place.
    """

    rtol: float = 1e-3
    atol: float = 1e-5
    rounded: int = 8

    def strict(self) -> Tolerance:
        """The tolerance for one operator, or few: they add up less. In half precision, each may round differently."""
        if self.rtol > Tolerance().rtol:
            return self
        return Tolerance(self.rtol / 10, self.atol / 10, self.rounded)

    @staticmethod
    def of(source: Any) -> Tolerance:
        """The tolerance for a model: if it computes in half precision, each operator may round differently.

        Args:
            source: the model as `irc.compile` takes it, not as passes have changed it, which is what is checked.
        """
        module, _ = load_module(source)
        with suppress(Error):  # a branch that is never taken may not fit together: it says nothing of others
            PassManager([ShapeInference()]).run(module)
        nodes = [n for n in with_subgraphs(*module.graphs.values()) if n.kind != CONSTANT]
        types = {v.type for v in (*module.main.inputs, *(v for n in nodes for v in n.outputs))}
        coarsest = max((_LAST_PLACE.get(type.dtype, 0.0) for type in types), default=0.0)
        return Tolerance(max(Tolerance().rtol, 4 * coarsest), max(Tolerance().atol, 4 * coarsest))


def difference(found: Any, expected: Any, tolerance: Tolerance) -> tuple[float, bool]:
    """Largest difference relative to the largest element, and whether all elements are within the tolerance.

    Lists, maps and None compare by element; NaN equals NaN, infinities themselves.
    """
    if is_sequence(expected) and is_sequence(found):
        pairs = [difference(f, e, tolerance) for f, e in zip(found, expected, strict=False)]
        return max((p[0] for p in pairs), default=0.0), len(found) == len(expected) and all(p[1] for p in pairs)
    if is_mapping(expected) and is_mapping(found):
        keys = list(expected)
        error, right = difference([found.get(k) for k in keys], [expected[k] for k in keys], tolerance)
        return error, right and found.keys() == expected.keys()
    if expected is None or found is None:
        return 0.0, expected is found
    if any(is_sequence(x) or is_mapping(x) for x in (found, expected)):
        return float("inf"), False
    return _array_difference(np.asarray(found), np.asarray(expected), tolerance)


def _array_difference(a: Array, b: Array, tolerance: Tolerance) -> tuple[float, bool]:
    if a.shape != b.shape or not _same_type(a, b):
        return float("inf"), False
    if a.dtype.kind in "OUSTb" or a.size == 0:
        return 0.0, bool(np.array_equal(a, b))
    dtype = DType.from_numpy(a.dtype)
    if dtype.is_integer and dtype.bits > tolerance.rounded and not np.array_equal(a, b):
        gap = np.abs(a.astype(np.float64) - b.astype(np.float64)).max()
        return float(gap / (np.abs(b.astype(np.float64)).max() or 1.0)), False
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide)
    finite = np.isfinite(b)
    scale = float(np.abs(b[finite]).max(initial=0.0))
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return float("inf"), False
    gap = np.abs(a[finite] - b[finite])
    allowed = tolerance.atol * scale + tolerance.rtol * np.abs(b[finite])
    if dtype.bits <= tolerance.rounded:
        allowed += _last_places(dtype, b[finite])
    return float(gap.max(initial=0.0)) / (scale or 1.0), bool((gap <= allowed).all())


def _last_places(dtype: DType, numbers: Array) -> Any:
    """For each of ``numbers``, as float64, at most how far away the next number of type ``dtype`` is."""
    if dtype.is_integer:  # NumPy's kinds do not tell, for int4 say
        return 1.0
    import ml_dtypes  # slow to import, needed only for its own types

    finfo: Any = ml_dtypes.finfo
    info = finfo(dtype.numpy)
    return np.maximum(float(info.eps) * np.abs(numbers), float(info.smallest_subnormal))


def _same_type(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype or (a.dtype.kind in "OUST" and b.dtype.kind in "OUST")
