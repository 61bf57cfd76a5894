"""Dropout, of elements or whole channels."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten.element_types import FLOAT32, check_result, check_writable, overwrite
from irc.runtime.kernels.aten.random import uniform
from irc.runtime.kernels.aten.registering import table
from irc.runtime.kernels.support import Array


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise Error("IRC424", f"the probability of dropout is {p}; it must be between 0 and 1")


def _kept(shape: tuple[int, ...], p: float) -> Array:
    _check_probability(p)
    return np.asarray(uniform(shape) >= p)


def _dropped_together(x: Array) -> tuple[int, ...]:
    """The shape of what is dropped or kept as a whole: channels. Error IRC421 if there are none."""
    if x.ndim < 2:
        raise Error("IRC421", f"channels are dropped of at least 2 dimensions; the shape is {list(x.shape)}")
    return (*x.shape[:2], *(1,) * (x.ndim - 2))


def factors(x: Array, p: float, features: bool = False) -> Array:
    """What to multiply ``x`` by: 0 where something is dropped, 1 / (1 - p) elsewhere; Error unless ``0 <= p <= 1``.

    Integers are dropped all or none.
    """
    if p == 1:
        return np.zeros((), x.dtype)
    check_result(x, FLOAT32)
    return np.asarray(_kept(_dropped_together(x) if features else x.shape, p) / (1 - p if p < 1 else 1)).astype(x.dtype)


def _dropout(features: bool) -> Callable[..., Array]:
    def run(x: Array, p: float, train: bool) -> Array:
        _check_probability(p)
        return np.asarray(x * factors(x, p, features)) if train and p and x.size else x

    return run


def _dropout_in_place(features: bool) -> Callable[..., Array]:
    def run(x: Array, p: float, train: bool) -> Array:
        _check_probability(p)
        if train and p:
            check_writable(x)
            np.multiply(x, factors(x, p, features), out=x)
        return x

    return run


def _native_dropout(x: Array, p: float, train: bool | None = True) -> tuple[Array, Array]:
    if not x.size:
        return x, np.empty_like(x)
    if train is False or p == 0:  # None means training, too
        return x.copy(), np.ones(x.shape, bool)
    check_result(x, FLOAT32)
    kept = _kept(x.shape, p)
    return np.asarray(x * kept / (1 - p if p < 1 else 1)).astype(x.dtype), kept


def _alpha_dropout(features: bool) -> Callable[..., Array]:
    """Dropped elements become the value that selu saturates at, then mean and variance are restored."""

    def run(x: Array, p: float, train: bool) -> Array:
        _check_probability(p)
        if not train or p == 0 or not x.size:
            return x
        if p == 1:
            return np.asarray(x * x.dtype.type(0))
        check_result(x, FLOAT32)
        saturation = -1.7580993408473766
        kept = _kept(_dropped_together(x) if features else x.shape, p)
        scale = 1 / math.sqrt((saturation**2 * p + 1) * (1 - p))
        return np.asarray(np.where(kept, x, saturation) * scale - saturation * p * scale).astype(x.dtype)

    return run


def _written(run: Callable[..., Array]) -> Callable[..., Array]:
    def writing(x: Array, p: float, train: bool) -> Array:
        found = run(x, p, train)
        return x if found is x else overwrite(x, found)

    return writing


table(
    {
        "dropout": _dropout(False),
        "dropout_": _dropout_in_place(False),
        "feature_dropout": _dropout(True),
        "feature_dropout_": _dropout_in_place(True),
        "native_dropout": _native_dropout,
        "alpha_dropout": _alpha_dropout(False),
        "alpha_dropout_": _written(_alpha_dropout(False)),
        "feature_alpha_dropout": _alpha_dropout(True),
        "feature_alpha_dropout_": _written(_alpha_dropout(True)),
    }
)
