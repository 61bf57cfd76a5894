"""Operators whose results depend on places and order: indexing, reductions, sorting, creation, against torch."""

import numpy as np
import pytest

from tests.arrays import ramp
from tests.differential.helpers import Array, Typed, compare


def mixed(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    return np.asarray(np.random.default_rng(seed).integers(-4, 5, shape)).astype(dtype)


INDICES = np.array([[0, 2], [1, 1]])


def test_reading_by_index() -> None:
    x = ramp(3, 4, 5)
    i, j = np.array([2, 0, -1]), np.array([1, 3, 0])
    single = ([i], [None, i], [i, j], [i, None, j], [None, i, j], [INDICES], [i, j, i], [np.array(1)])
    masks = ([mixed(3, dtype="bool")], [mixed(3, 4, dtype="bool")], [None, mixed(4, dtype="bool")])
    for indices in (*single, *masks, [i[:, None], j], [np.array(1), np.array(2), np.array(0)]):
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
        flat = (indices(), indices(0), indices(0, -1), indices(-1, 5), indices(6), indices(-7))
        for places in (*flat, indices(5, 0)[None]):
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
    shapes = ((3, 3), (2, 5), (9, 3), (4, 3), (5, 1), (0, 3), (3, 0), (2, 2, 2), (2, 3, 3), (3,), ())
    strided = (ramp(3, 7).T, ramp(8, 6)[::2, 1::2], np.broadcast_to(ramp(3), (3, 3)))
    sources = [*(ramp(*shape) for shape in shapes), *strided, ramp(3, 3).astype(np.uint8), ramp(3, 3) > 4]
    for x in sources:
        for value in (5, 1.5, 300, -1, 1j):
            for wrap in (False, True):
                compare("aten::fill_diagonal_", x, value, wrap)
