"""How results of operators on permuted tensors lie in memory: what a later view, or a write through reshape, does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.differential.helpers import Array, compare

ORDERS = [(1, 0), (2, 1, 0), (1, 2, 0), (0, 2, 1), (3, 2, 1, 0), (0, 2, 3, 1), (0, 2, 3, 4, 1), (4, 3, 2, 1, 0)]
"""Axes from the slowest to the fastest; two of them are channels last."""


def permuted(order: tuple[int, ...], dtype: str = "float32", least: int = -4) -> Array:
    shape = (2, 3, 4, 5, 2)[: len(order)]
    values = np.random.default_rng(0).integers(least, 5, shape).astype(dtype)
    return np.ascontiguousarray(values.transpose(order)).transpose(np.argsort(order))


def calls(x: Array, classes: Array) -> list[tuple[str, tuple[Any, ...]]]:
    zeros, first = np.zeros(x.shape, np.int64), np.zeros(1, np.int64)
    columns = x.shape[-1]
    wide = x.ndim > 2
    return [
        ("nonzero", (x,)),
        ("argwhere", (x,)),
        ("tril", (x, 0)),
        ("triu", (x, 1)),
        ("scatter", (x, 1, zeros[:, :1], x)),
        ("scatter", (x, 1, zeros, 1.5)),
        ("scatter_add", (x, 1, zeros, x)),
        ("scatter_reduce", (x, 1, zeros, x, "amax", True)),
        ("index_add", (x, 1, first, x[:, :1], 1)),
        ("index_copy", (x, 1, first, x[:, :1])),
        ("index_fill", (x, 1, first, 2.5)),
        ("index_select", (x, 1, first)),
        ("one_hot", (classes, 9)),
        *[(name, (x, dim, None)) for name in ("softmax", "log_softmax") for dim in (0, 1, -1)],
        ("roll", (x, [1], [1])),
        ("roll", (x, [1, -2], [1, 0])),
        ("roll", (x, [3, 1], [-1, -1])),
        ("matmul", (x, np.ones((columns, 3), np.float32))),
        ("matmul", (x, np.ones((3, columns), np.float32).T)),
        ("linear", (x, np.ones((3, columns), np.float32), np.ones(3, np.float32))),
        *([("matmul", (x, np.swapaxes(x, -1, -2))), ("cdist", (x, x, 2.0, None))] if wide else []),
        *([("instance_norm", (x, None, None, None, None, True, 0.1, 1e-5, False))] if wide else []),
        *([("instance_norm", (x, None, None, *STATISTICS, False, 0.1, 1e-5, False))] if wide else []),
    ]


STATISTICS = np.zeros(3, np.float32), np.ones(3, np.float32)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_of_permuted_tensors(order: tuple[int, ...]) -> None:
    for name, arguments in calls(permuted(order), permuted(order, "int64", 0)):
        compare(f"aten::{name}", *arguments, tolerance=2e-5)
