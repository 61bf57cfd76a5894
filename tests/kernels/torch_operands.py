"""Operands of torch's operators that select by a mask, and of powers: the tables of other tests have few of them."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

DTYPES = [np.dtype(t) for t in ("f", "d", "e", ml_dtypes.bfloat16, "i8", "i1", "u1", "?", "F", "D")]
NUMBERS = (2, True, -1, 0.5, -0.5, 3.0)
Layout = Callable[[np.ndarray], np.ndarray]
LAYOUTS: tuple[Layout, ...] = (np.ascontiguousarray, np.asfortranarray)

Shape = tuple[int, int]


def elements(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> np.ndarray:
    """Numbers around 0, of floats also some that are special; of truth values, both."""
    values = np.random.default_rng(seed).normal(0, 3, shape)
    if dtype.kind in "fVc" and values.size > 5:
        values.flat[:5] = np.nan, np.inf, -np.inf, -0.0, 1
    if dtype.kind == "b":
        return np.asarray(values > 0)
    with np.errstate(invalid="ignore"):
        return np.asarray(values * (1 + 0.5j) if dtype.kind == "c" else values).astype(dtype)


def _forms(shape: Shape, dtype: np.dtype[Any], seed: int) -> list[np.ndarray]:
    """One whole operand, and others that broadcast to it."""
    return [elements(s, dtype, seed) for s in (shape, (shape[1],), (shape[0], 1), (1, 1), ())]


def _where(shape: Shape, a: np.dtype[Any], b: np.dtype[Any]) -> Iterator[list[Any]]:
    masks, whole = [np.asarray(x > 0) for x in _forms(shape, np.dtype("f"), 1)], elements(shape, a, 2)
    for mask, other in product(masks, [*_forms(shape, b, 3), *NUMBERS]):
        yield [mask, whole, other]
        yield [mask, other, whole]
    yield [masks[0], masks[0], whole]
    yield [masks[0], whole, masks[0]]
    yield [masks[0], whole, whole]
    yield [masks[0].view(np.uint8), whole, 1]


def _masked_fill(shape: Shape, a: np.dtype[Any], b: np.dtype[Any]) -> Iterator[list[Any]]:
    masks = [np.asarray(x > 0) for x in _forms(shape, np.dtype("f"), 1)]
    for x, mask, value in product(_forms(shape, a, 2), masks, [elements((), b, 3), *NUMBERS]):
        yield [x, mask, value]
    yield [masks[0], masks[0], elements((), b, 3)]


def _pow(shape: Shape, a: np.dtype[Any], b: np.dtype[Any]) -> Iterator[list[Any]]:
    whole = elements(shape, a, 2)
    for other in [*_forms(shape, b, 3), *NUMBERS, *[np.full(s, 3).astype(b) for s in ((shape[0], 1), (1, 1), ())]]:
        yield [whole, other]
        yield [other, whole]
    yield [whole, whole]


_OPERANDS = {"where": _where, "masked_fill": _masked_fill, "pow": _pow}
NAMES = sorted(_OPERANDS)


def operands_of(name: str, shape: Shape, a: np.dtype[Any], b: np.dtype[Any]) -> Iterator[list[Any]]:
    """Lists of operands whose result has ``shape``, if there is one; one may be there twice."""
    for lie, operands in product(LAYOUTS, _OPERANDS[name](shape, a, b)):
        yield copies(operands, lie)


def copies(operands: list[Any], lie: Layout = np.copy) -> list[Any]:
    """Copies of all arrays; one of what is there twice."""
    made = {id(x): np.array(lie(x), copy=True, order="K") for x in operands if isinstance(x, np.ndarray)}
    return [made.get(id(x), x) for x in operands]
