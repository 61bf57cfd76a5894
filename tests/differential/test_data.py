"""Operators whose results depend on places and order: indexing, reductions, sorting, creation, against torch."""

from __future__ import annotations

import numpy as np
import pytest

from tests.arrays import ramp
from tests.differential.helpers import Array, Typed, compare

OPTIONS = (None, None, None, None)


def mixed(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    return np.asarray(np.random.default_rng(seed).integers(-4, 5, shape)).astype(dtype)


LAYOUTS = {
    "plain": mixed(2, 3, 4),
    "transposed": mixed(4, 3, 2).T,
    "strided": mixed(4, 3, 8)[::2, :, ::2],
}
INDICES = np.array([[0, 2], [1, 1]])


def test_reading_by_index() -> None:
    x = ramp(3, 4, 5)
    i, j = np.array([2, 0, -1]), np.array([1, 3, 0])
    for indices in (
        [i],
        [None, i],
        [i, j],
        [i, None, j],
        [None, i, j],
        [INDICES],
        [i, j, i],
        [np.array(1)],
        [np.array(1), np.array(2), np.array(0)],
        [mixed(3, dtype="bool")],
        [mixed(3, 4, dtype="bool")],
        [None, mixed(4, dtype="bool")],
        [i[:, None], j],
    ):
        compare("aten::index", x, Typed(indices, "Tensor?[]"), strides=False)
        if indices[0] is not None:
            compare("aten::index", x.transpose(0, 2, 1)[:, :4, :], Typed(indices[:1], "Tensor?[]"), strides=False)
    compare("aten::index", x, Typed([np.array([7])], "Tensor?[]"))
    for dim in (0, 1, -1):
        compare("aten::index_select", x, dim, np.array([2, 0, 2]))
    compare("aten::index_select", x, 0, np.array([5]))
    compare("aten::gather", ramp(3, 4), 1, INDICES, False)
    compare("aten::gather", ramp(3, 4), 0, INDICES, False)
    compare("aten::gather", ramp(3, 4).T, 0, INDICES, False)
    compare("aten::take", x, INDICES)
    compare("aten::take_along_dim", ramp(3, 4), np.array([[0], [1], [2]]), 1)
    compare("aten::take_along_dim", ramp(3, 4), INDICES, None)
    compare("aten::embedding", ramp(5, 3), INDICES, -1, False, False)
    compare("aten::one_hot", INDICES, -1)
    compare("aten::one_hot", INDICES, 4)
    for value in (mixed(3, 4), mixed(5), np.array(1), np.array(0), mixed(0, 3)):
        compare("aten::nonzero", value, strides=False)
        compare("aten::argwhere", value, strides=False)
    compare("aten::nonzero_numpy", mixed(3, 4), strides=False)


@pytest.mark.parametrize("suffix", ["", "_"])
def test_writing_by_index(suffix: str) -> None:
    x = ramp(3, 4)
    i, j = np.array([2, 0, 2]), np.array([1, 3, 1])
    for accumulate in (False, True):
        places = [i[:2], j[:2]] if not accumulate else [i, j]
        compare(f"aten::index_put{suffix}", x, Typed(places, "Tensor?[]"), ramp(len(places[0])) + 9, accumulate)
        compare(f"aten::index_put{suffix}", x, Typed([i[:2]], "Tensor?[]"), ramp(4), accumulate)
        compare(f"aten::index_put{suffix}", x.T, Typed([None, i[:2]], "Tensor?[]"), np.array(7, np.float32), accumulate)
        compare(f"aten::index_put{suffix}", x, Typed([x > 5], "Tensor?[]"), np.array(7, np.float32), accumulate)
    compare(f"aten::index_fill{suffix}", x, 1, j[:2], 7)
    compare(f"aten::index_fill{suffix}", x, 0, i, np.array(2.5, np.float32))
    compare(f"aten::index_copy{suffix}", x, 1, np.array([0, 2]), ramp(3, 2) + 50)
    compare(f"aten::index_add{suffix}", x, 0, i, ramp(3, 4), 2)
    source = ramp(2, 2) + 20
    compare(f"aten::scatter{suffix}", x, 1, np.array([[0, 2], [1, 3]]), source)
    compare(f"aten::scatter{suffix}", x, 0, INDICES, 7)
    compare(f"aten::scatter{suffix}", x, 0, INDICES, source, "add")
    compare(f"aten::scatter{suffix}", x, 0, INDICES, source, "multiply")
    compare(f"aten::scatter_add{suffix}", x, 0, INDICES, source)
    if not suffix:
        for reduce in ("sum", "prod", "mean", "amax", "amin"):
            for include in (True, False):
                compare("aten::scatter_reduce", x, 0, INDICES, source, reduce, include)
        compare("aten::select_scatter", x, ramp(4), 0, 1)
        compare("aten::slice_scatter", x, ramp(3, 2), 1, 0, None, 2)
        compare("aten::diagonal_scatter", x, ramp(3), 0, 0, 1)
        compare("aten::select_scatter", x.T, ramp(3), 0, 1, strides=False)


FLOATING = "mean std var logsumexp norm linalg_vector_norm".split()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "bool", "uint8"])
def test_reductions(layout: str, dtype: str) -> None:
    x = LAYOUTS[layout].astype(dtype)
    for name in ("sum", "mean"):
        compare(f"aten::{name}", x, None)
        for dims in ([0], [1], [-1], [0, 2], [0, 1, 2], Typed([], "int[]"), None):
            for keep in (False, True):
                compare(f"aten::{name}", x, dims, keep, None)
        compare(f"aten::{name}", x, [1], False, 7)
    compare("aten::prod", x, None)
    compare("aten::prod", x, 1, False, None)
    for name in ("amax", "amin"):
        for dims in ([0], [0, 2], [-1]):
            compare(f"aten::{name}", x, dims, True)
            compare(f"aten::{name}", x, dims, False)
    for name in ("max", "min"):
        compare(f"aten::{name}", x)
        compare(f"aten::{name}", x, x + x)
        for dim in (0, 1, -1):
            for keep in (False, True):
                compare(f"aten::{name}", x, dim, keep, outputs=2)
    for name in ("argmax", "argmin"):
        compare(f"aten::{name}", x, None, False)
        for dim in (0, -1):
            compare(f"aten::{name}", x, dim, True)
            compare(f"aten::{name}", x, dim, False)
    compare("aten::aminmax", x, 1, False, outputs=2)
    compare("aten::aminmax", x, None, False, outputs=2)
    for name in ("any", "all"):
        compare(f"aten::{name}", x)
        compare(f"aten::{name}", x, 1, False)
        compare(f"aten::{name}", x, [0, 1], True)
    compare("aten::count_nonzero", x, None)
    compare("aten::count_nonzero", x, 1)
    compare("aten::count_nonzero", x, [0, 2])
    for dim in (0, -1):
        compare("aten::cumsum", x, dim, None)
        compare("aten::cumprod", x, dim, None)
    compare("aten::cumsum", x, 0, 7)
    for p in (0, 1, 2, 3, float("inf"), -float("inf"), 1.5):
        compare("aten::norm", x, p)
        compare("aten::norm", x, p, [1], False)
        compare("aten::linalg_vector_norm", x, p, [0, 2], True, None)
    compare("aten::norm", x, 2, [1], False, 7)
    compare("aten::logsumexp", x, [1], False)
    compare("aten::logsumexp", x, [0, 2], True)
    for name in ("std", "var"):
        compare(f"aten::{name}", x, True)
        compare(f"aten::{name}", x, False)
        compare(f"aten::{name}", x, [1], True, False)
        compare(f"aten::{name}", x, [0, 2], False, True)
        compare(f"aten::{name}", x, [1], 0, False)
        compare(f"aten::{name}_mean", x, [1], True, False, outputs=2)


def test_reductions_of_scalars_and_nothing() -> None:
    for x in (np.array(2.5, np.float32), np.zeros((0, 3), np.float32)):
        for name in ("sum", "mean"):
            compare(f"aten::{name}", x, None)
            compare(f"aten::{name}", x, [0], False, None)
        compare("aten::max", x)
        compare("aten::argmax", x, None, False)
        compare("aten::any", x)
        compare("aten::all", x)
        compare("aten::cumsum", x, 0, None)
    nan = np.array([[1, np.nan, 3], [np.nan, 2, np.nan]], np.float32)
    for name in ("max", "min"):
        compare(f"aten::{name}", nan)
        compare(f"aten::{name}", nan, 1, False, outputs=2)
    compare("aten::sort", nan, 1, False, outputs=2)
    compare("aten::sort", nan, 1, True, outputs=2)
    compare("aten::median", nan)
    compare("aten::median", nan, 1, False, outputs=2)
    compare("aten::trace", ramp(3, 4))
    for values in ([1, 2, 3], [1.5, 2.5], [True, False]):
        compare("aten::sum", values)
        compare("aten::any", values)
        compare("aten::all", values)
        if not isinstance(values[0], bool):
            compare("prim::max", values)
            compare("prim::min", values)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sorting(layout: str) -> None:
    x = np.random.default_rng(3).permutation(24).astype(np.float32).reshape(2, 3, 4)
    x = x.transpose(2, 1, 0) if layout == "transposed" else x[:, ::2] if layout == "strided" else x
    for dim in (0, 1, -1):
        for descending in (False, True):
            compare("aten::sort", x, dim, descending, outputs=2)
            compare("aten::sort", x, True, dim, descending, outputs=2)
            compare("aten::argsort", x, dim, descending)
        for k in (0, 1, 2):
            compare("aten::topk", x, k, dim, True, True, outputs=2, strides=False)
            compare("aten::topk", x, k, dim, False, True, outputs=2, strides=False)
        compare("aten::kthvalue", x, 2, dim, False, outputs=2, strides=False)
        compare("aten::kthvalue", x, 1, dim, True, outputs=2, strides=False)
        compare("aten::median", x, dim, False, outputs=2, strides=False)
    compare("aten::median", x)
    compare("aten::sort", LAYOUTS[layout], True, 1, False, outputs=2)  # stable


def test_counting_and_searching() -> None:
    x = mixed(3, 5, dtype="int64")
    for flags in ((True, False, False), (True, True, True)):
        compare("aten::_unique2", x, *flags, outputs=3)
    compare("aten::unique_consecutive", np.array([1, 1, 2, 2, 3, 1]), True, True, None, outputs=3)
    compare("aten::unique_consecutive", np.array([[1, 1], [1, 1], [2, 3]]), True, True, 0, outputs=3)
    compare("aten::mode", x, 1, False, outputs=2)
    compare("aten::bincount", np.array([1, 3, 1]), None, 0)
    compare("aten::bincount", np.array([1, 3, 1]), np.array([0.5, 1, 2], np.float32), 6)
    compare("aten::histc", ramp(9), 4, 0, 0)
    compare("aten::histc", ramp(9), 4, 2, 6)
    edges = np.array([1.0, 3, 5], np.float32)
    for right in (False, True):
        compare("aten::bucketize", mixed(3, 4), edges, False, right)
        compare("aten::bucketize", 3, edges, True, right)
        compare("aten::searchsorted", edges, mixed(3, 4), False, right, None, None)
        compare("aten::searchsorted", np.sort(mixed(3, 4), 1), mixed(3, 2), False, right, None, None)


def test_creation() -> None:
    for name in ("zeros", "ones"):
        compare(f"aten::{name}", [2, 3], *OPTIONS)
        compare(f"aten::{name}", [2, 3], 4, *OPTIONS[1:])
        compare(f"aten::{name}", [0], *OPTIONS)
        compare(f"aten::{name}_like", ramp(2, 3).T, *OPTIONS, None)
        compare(f"aten::{name}_like", ramp(2, 3), 4, *OPTIONS)
        compare(f"aten::new_{name}", ramp(2, dtype="int32"), [2, 2], *OPTIONS)
    compare("aten::empty", [2, 3], *OPTIONS, None, values=False)
    compare("aten::empty_like", ramp(2, 3), *OPTIONS, None, values=False)
    compare("aten::new_empty", ramp(2), [3], *OPTIONS, values=False)
    compare("aten::empty_strided", [2, 3], [1, 2], *OPTIONS, values=False)
    for value in (2, 2.5):
        compare("aten::full", [2, 3], value, *OPTIONS)
        compare("aten::full", [2, 3], value, 7, *OPTIONS[1:])
    compare("aten::full_like", ramp(2, 3), 2, *OPTIONS, None)
    compare("aten::new_full", ramp(2), [3], 5, *OPTIONS)
    for end in (5, 4.5, 0):
        compare("aten::arange", end, *OPTIONS)
        compare("aten::arange", end, 6, *OPTIONS[1:])
    for start, end, step in ((1, 8, 3), (0.0, 1.0, 0.1), (5, 0, -2), (1.5, 4, 1), (3, 3, 1)):
        compare("aten::arange", start, end, step, *OPTIONS)
        compare("aten::arange", start, end, *OPTIONS) if step > 0 else None
    for steps in (1, 2, 5, 10, 0):
        compare("aten::linspace", 0, 1, steps, *OPTIONS)
        compare("aten::linspace", -2.5, 7.25, steps, 7, *OPTIONS[1:])
    compare("aten::linspace", 0, 10, 4, 4, *OPTIONS[1:])
    compare("aten::logspace", 0, 2, 5, 10.0, *OPTIONS, tolerance=1e-5)
    compare("aten::eye", 3, *OPTIONS)
    compare("aten::eye", 2, 4, *OPTIONS)
    compare("aten::scalar_tensor", 2.5, *OPTIONS)
    for offset in (-1, 0, 2):
        compare("aten::tril_indices", 3, 4, offset, 4, *OPTIONS[1:], strides=False)
        compare("aten::triu_indices", 3, 4, offset, 4, *OPTIONS[1:], strides=False)
    for data in ([1, 2, 3], [1.5, 2.5], [[1, 2], [3, 4]], [True, False], 3, 2.5, True):
        compare("aten::tensor", data, None, None, False)
        compare("aten::tensor", data, 7, None, False)
    compare("aten::as_tensor", ramp(3), None, None)
    compare("aten::as_tensor", ramp(3), 7, None)
    compare("prim::NumToTensor", 3)
    compare("prim::NumToTensor", 2.5)


def test_random_tensors_are_of_the_right_kind() -> None:
    for name in ("rand", "randn"):
        compare(f"aten::{name}", [2, 3], *OPTIONS, values=False)
        compare(f"aten::{name}", [2, 3], 7, *OPTIONS[1:], values=False)
        compare(f"aten::{name}_like", ramp(2, 3).T, *OPTIONS, None, values=False)
    compare("aten::randint", 5, [2, 3], 4, *OPTIONS[1:], values=False)
    compare("aten::randint", 2, 5, [2, 3], 4, *OPTIONS[1:], values=False)
    compare("aten::randint_like", ramp(2, 3), 5, *OPTIONS, None, values=False)
    compare("aten::randint_like", ramp(2, 3), 2, 5, *OPTIONS, None, values=False)
    compare("aten::randperm", 5, 4, *OPTIONS[1:], values=False)
    compare("aten::bernoulli", ramp(2, 2) / 4, None, values=False)
    compare("aten::bernoulli", ramp(2, 2), 0.5, None, values=False)
    compare("aten::normal", ramp(3), 1.0, None, values=False)
    compare("aten::normal", 0.0, 1.0, [2, 3], None, *OPTIONS, values=False)
    compare("aten::multinomial", ramp(2, 3) + 1, 2, False, None, values=False)
    compare("aten::poisson", ramp(3), None, values=False)


def test_numbers_of_random_tensors() -> None:
    """Whatever is certain of them."""
    from tests.runtime.test_aten import op

    assert sorted(op("randperm", 9).tolist()) == list(range(9))
    drawn = op("randint", 3, 6, [1000])
    assert set(drawn.tolist()) == {3, 4, 5}
    assert op("rand", [100]).min() >= 0 and op("rand", [100]).max() < 1
    assert set(op("bernoulli", np.array([0.0, 1.0] * 50, np.float32)).tolist()) == {0.0, 1.0}
    x = np.zeros(1000, np.float32)
    assert op("uniform_", x, 2.0, 3.0) is x and x.min() >= 2 and x.max() <= 3
    assert op("exponential_", x).min() >= 0 and op("bernoulli_", x, 1.0).min() == 1
    assert abs(op("normal_", x, 5.0, 0.1).mean() - 5) < 0.1
    rows = op("multinomial", np.array([[1.0, 0, 1]]), 2)
    assert sorted(rows[0].tolist()) == [0, 2]


LISTS = [[3, 1, 2], [2.5, -1.5], ["b", "a"], [True, False]]


@pytest.mark.parametrize("values", LISTS)
def test_lists(values: list[object]) -> None:
    one = values[0]
    compare("aten::append", values, one)
    compare("aten::add", values, values)
    compare("aten::mul", values, 2)
    compare("aten::len", values)
    compare("aten::list", values)
    compare("aten::copy", values)
    for index in (0, -1, 1, 5):
        compare("aten::__getitem__", values, index)
        compare("aten::_set_item", values, index, one)
    for start, end, step in ((None, None, 1), (1, None, 1), (0, -1, 1), (None, None, 2)):
        compare("aten::slice", values, start, end, step)
    compare("aten::__contains__", values, one) if not isinstance(one, bool) else None
    compare("aten::index", values, values[-1])
    compare("aten::count", values, one)
    compare("aten::sorted", values)
    compare("aten::eq", values, list(values))
    compare("aten::ne", values, values[:1])
    compare("aten::pop", values, -1)
    for name, more in (("reverse", ()), ("clear", ()), ("sort", (True,)), ("extend", (values,)), ("insert", (1, one))):
        compare(f"aten::{name}", values, *more, outputs=0)
    compare("aten::remove", values, one, outputs=0)
    compare("aten::Delete", values, 0, outputs=0)


def test_lists_of_tensors() -> None:
    x, y = ramp(2), ramp(2) + 5
    compare("aten::append", [x], y)
    compare("aten::__getitem__", [x, y], 1)
    compare("aten::slice", [x, y], 1, None, 1)
    compare("aten::add", [x], [y])
    compare("aten::pop", [x, y], 0)
    compare("aten::index", [ramp(), np.array(1, np.float32)], np.array(1, np.float32))
    compare("aten::eq", [ramp()], [ramp()])
    compare("aten::remove", [ramp(), np.array(1, np.float32)], np.array(1, np.float32), outputs=0)


def test_dictionaries() -> None:
    for table in ({"a": 1, "b": 2}, {1: 2.5, 3: 4.5}, {"x": ramp(2)}):
        key, value = next(iter(table.items()))
        compare("aten::__getitem__", table, key)
        compare("aten::get", table, key)
        compare("aten::len", table)
        compare("aten::keys", table)
        compare("aten::values", table)
        compare("aten::items", table)
        compare("aten::copy", table)
        compare("aten::__contains__", table, key)
        compare("aten::pop", table, key)
        compare("aten::popitem", table)
        compare("aten::setdefault", table, key, value)
        compare("aten::_set_item", table, key, value, outputs=0)
        compare("aten::Delete", table, key, outputs=0)
        compare("aten::clear", table, outputs=0)
        compare("aten::update", table, table, outputs=0)
    compare("aten::__getitem__", {"a": 1}, "q")
    compare("aten::get", {"a": 1}, "q", 5)
    compare("aten::dict", [("a", 1), ("b", 2)])


def test_strings_and_ranges() -> None:
    for text in ("hello", "", "Ab"):
        for name in ("lower", "upper", "len", "list"):
            compare(f"aten::{name}", text)
        compare("aten::add", text, "x")
        compare("aten::eq", text, "hello")
        compare("aten::split", text, "l", -1)
        compare("aten::startswith", text, "he", 0, -1)
        compare("aten::endswith", text, "lo", 0, -1)
        compare("aten::slice", text, 1, 3, 1)
        compare("aten::join", text, ["a", "b"])
    compare("aten::__getitem__", "hello", -1)
    compare("prim::StringIndex", "hello", 1)
    compare("aten::ord", "a")
    for value in (1, 2.5, True, "s", [1, 2], [1.5], (1, 2.0), None, 1e20, 2.0):
        compare("aten::str", value)
        compare("aten::format", "{} and {}", value, value)
    compare("aten::percentFormat", "%d of %s", 3, "x")
    compare("aten::percentFormat", "%d of %s", (3, "x"))
    for low, high, step in ((0, 10, 3), (10, 0, -3), (0, 0, 1), (5, 1, 1)):
        compare("aten::__range_length", low, high, step)
        compare("aten::__derive_index", low, high, step)
    compare("aten::__round_to_zero_floordiv", -7, 2)
    compare("prim::rangelist", 4)
    compare("aten::__is__", None, None)
    compare("aten::__isnot__", 1, None)
    compare("aten::__not__", True)
    compare("prim::min", 2, 3)
    compare("prim::max", 2.5, 3.5)
    compare("prim::max", [1, 5], [1, 3])
    for name in ("Int", "Float", "Bool"):
        for value in (1, 2.7, True, -2.5):
            if not (name == "Bool" and isinstance(value, bool)):
                compare(f"aten::{name}", value)
    compare("aten::Int", "12")
    compare("aten::Float", "2.5")


@pytest.mark.parametrize("name", ["put", "put_"])
def test_put(name: str) -> None:
    def indices(*places: int) -> Array:
        return np.array(places, np.int64)

    for x in (ramp(2, 3), ramp(3, 2).T, ramp(4, 6)[::2, 1::2], np.array(2.0, np.float32), ramp(0, 3)):
        for places in (
            indices(),
            indices(0),
            indices(0, -1),
            indices(-1, 5),
            indices(6),
            indices(-7),
            indices(5, 0)[None],
        ):
            for accumulate in (False, True):
                compare(f"aten::{name}", x, places, ramp(*places.shape) + 9, accumulate)
    for accumulate in (False, True):
        compare(f"aten::{name}", ramp(3) > 0, indices(0, 1), np.array([True, False]), accumulate)
        compare(f"aten::{name}", ramp(3), indices(0, 1).astype(np.int32), ramp(2), accumulate)
        compare(f"aten::{name}", ramp(3), indices(0, 1), ramp(1), accumulate)
        compare(f"aten::{name}", ramp(3), indices(0, 1), ramp(2).astype(np.float64), accumulate)
        compare(f"aten::{name}", np.broadcast_to(ramp(3), (2, 3)), indices(0), ramp(1), accumulate)
        compare(f"aten::{name}", ramp(2, 2), indices(0, 1, 2, 3).reshape(2, 2), ramp(2, 2).T, accumulate)
    compare(f"aten::{name}", ramp(3), indices(1, 1), ramp(2), True)


def test_fill_diagonal() -> None:
    sources = [
        ramp(*shape)
        for shape in ((3, 3), (2, 5), (9, 3), (4, 3), (5, 1), (0, 3), (3, 0), (2, 2, 2), (2, 3, 3), (3,), ())
    ]
    sources += [
        ramp(3, 7).T,
        ramp(8, 6)[::2, 1::2],
        np.broadcast_to(ramp(3), (3, 3)),
        ramp(3, 3).astype(np.uint8),
        ramp(3, 3) > 4,
    ]
    for x in sources:
        for value in (5, 1.5, 300, -1, 1j):
            for wrap in (False, True):
                compare("aten::fill_diagonal_", x, value, wrap)
