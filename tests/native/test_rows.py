"""Native operators that reduce rows, beside float64 and the NumPy kernels."""

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.effort import Spy, examples
from tests.graphs import ir, typed_ir
from tests.native.guarded import fresh, placed

pytest.importorskip("llvmlite")

import irc
from irc.ir import parse_graph
from irc.native.backend import Native
from irc.native.groups import Group
from irc.runtime.backends import Unsupported
from irc.runtime.binding import bind
from tests.native.rows import (
    CASES,
    CHANNELS,
    REDUCTIONS,
    Case,
    compiled,
    log_softmax,
    model,
    reduction,
    softmax,
    standardized,
)

Array = np.ndarray[Any, Any]

SHAPES = ((5, 1), (70, 2), (2, 3, 7), (70, 15), (5, 31), (33, 32), (3, 100), (257,))
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def operands(case: Case, shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    made = [rng.standard_normal(shape), *(rng.uniform(0.5, 1.5, s) for s in case.parameters(shape))]
    return [x.astype(dtype) for x in made]


def check(case: Case, given: list[Array], places: float = 8) -> None:
    """Compare with float64, to so many units in the last place of the largest magnitude, and with the NumPy kernel."""
    dtype = given[0].dtype
    proto = case.proto(given[0].shape, dtype)
    found = compiled(proto, given)(*given)
    reference = case.reference(*[x.astype(np.float64) for x in given])
    session = irc.compile(proto, "", backend="numpy")
    by_numpy = list(session.run(dict(zip([v.name for v in session.graph.inputs], given))).values())
    if case.outputs == 1:
        found, reference = [found], [reference]
    for y, wanted, other in zip(found, reference, by_numpy, strict=True):
        assert y.dtype == other.dtype and y.shape == other.shape
        wide, wanted = y.astype(np.float64), np.asarray(wanted, np.float64)
        with np.errstate(all="ignore"):
            scale = np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted)) + 1
            unit = float(max(ml_dtypes.finfo(dtype).eps, ml_dtypes.finfo(y.dtype).eps)) * scale
            np.testing.assert_allclose(wide, wanted, rtol=0, atol=places * unit)
            np.testing.assert_allclose(wide, other.astype(np.float64), rtol=0, atol=2 * places * unit)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, BFLOAT16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_operators_along_the_last_axis(name: str, dtype: Any) -> None:
    for shape in SHAPES if dtype == np.float32 else SHAPES[3:5]:
        check(CASES[name], operands(CASES[name], shape, dtype))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_any_axes(name: str) -> None:
    for axes, shape, keep in (
        ([0], (2, 70, 3), True),
        ([1], (4, 2, 65), False),
        ([1], (2, 70, 3), True),
        ([2], (3, 5, 9), False),
        ([2], (33, 2, 33), True),
        ([0, 1], (33, 2, 33), False),
        ([0, 2], (4, 2, 65), False),
        ([1, 2], (1, 9, 1), True),
        ([], (3, 5, 4), False),
        ([], (3, 5, 40), True),
    ):
        case = reduction(name, axes, keep)
        given = [np.abs(x) if name == "LogSum" else x for x in operands(case, shape)]
        check(case, given, 32)


@pytest.mark.parametrize("name", ["Sum", "Mean", "Max", "Min", "Prod", "L1", "SumSquare"])
def test_integers_are_reduced_as_numpy_does(name: str) -> None:
    small = ["i1", "u1"] if name in ("Max", "Min") else []
    for dtype, axes in product(["i4", "u4", "i8", "u8", *small], ([0], [1], [0, 1])):
        x = np.random.default_rng(0).integers(0 if dtype[0] == "u" else -100, 100, (45, 37)).astype(dtype)
        proto = reduction(name, axes).proto(x.shape, dtype)
        wanted = irc.compile(proto, "", backend="numpy").run({"x": x})["y0"]
        np.testing.assert_array_equal(compiled(proto, [x])(x), wanted, strict=True)


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_with_numbers_that_are_not_finite(axis: int) -> None:
    x = np.random.default_rng(0).standard_normal((6, 70)).astype(np.float32)
    x[0, 3], x[1, 69], x[2, 5], x[3, :], x[4, 1:] = np.nan, np.inf, -np.inf, -np.inf, -np.inf
    x = np.ascontiguousarray(x if axis else x.T)
    for kind in ("Softmax", "LogSoftmax", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceLogSumExp"):
        case = (
            reduction(kind[6:], [axis])
            if kind.startswith("Reduce")
            else Case(kind, {"axis": axis}, lambda _: [], softmax if kind == "Softmax" else log_softmax)
        )
        wanted = irc.compile(case.proto(x.shape), "", backend="numpy").run({"x": x})["y0"]
        found = compiled(case.proto(x.shape), [x])(x)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6, err_msg=kind)


def test_a_layer_far_from_zero_keeps_its_variance() -> None:
    x = (np.random.default_rng(0).standard_normal((4, 768)) + 1000).astype(np.float32)
    ones, zeros = np.ones(768, np.float32), np.zeros(768, np.float32)
    check(CASES["layer"], [x, ones, zeros], 1500)


VIEWS = {
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "reversed": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "apart": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "one row": lambda x: np.broadcast_to(x[:1], x.shape),
    "one column": lambda x: np.broadcast_to(x[:, :1], x.shape),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("shape", [(5, 37), (70, 9), (40, 130)])
def test_operands_lie_in_any_way(view: str, shape: tuple[int, int]) -> None:
    for case in (CASES["softmax"], CASES["layer"], CASES["softmax of the first axis"], reduction("Sum", [0])):
        given = operands(case, shape)
        kernel = compiled(case.proto(shape), given)
        x = VIEWS[view](given[0])
        first = kernel(x, *given[1:])
        second = kernel(np.ascontiguousarray(x), *given[1:])
        for a, b in zip(first, second) if isinstance(first, tuple) else ((first, second),):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def check_apart(case: Case, shape: tuple[int, ...], dtype: Any, steps: list[int]) -> None:
    """Compare with what comes of operands in C order; elements lie so many apart along each axis, or backwards."""

    def apart(x: Array) -> Array:
        found = np.zeros([n * abs(step) for n, step in zip(x.shape, steps)], x.dtype)
        found = found[tuple([slice(None, None, step) for step, _ in zip(steps, x.shape)])]
        found[...] = x
        return placed(found)

    rng = np.random.default_rng(0)
    given = [rng.uniform(0.5, 2, s).astype(dtype) for s in (shape, *case.parameters(shape))]
    kernel = compiled(case.proto(shape, dtype), given)
    plain = kernel(*given)
    out = fresh(plain.shape, plain.dtype)
    assert kernel(*map(apart, given), out=out) is out
    tolerance = 2e-2 if np.dtype(dtype).itemsize == 2 else 1e-5
    np.testing.assert_allclose(out.astype(np.float64), plain.astype(np.float64), rtol=tolerance, atol=tolerance)


ONE_RESULT = sorted(name for name, case in CASES.items() if case.outputs == 1)
sizes = st.sampled_from([1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 65, 130])
dtypes = st.sampled_from([np.float32, np.float32, np.float64, np.float16, BFLOAT16])
steps = st.lists(st.sampled_from([1, 1, 1, 2, -1, -2]), min_size=4, max_size=4)


@examples(100)
@given(st.sampled_from(ONE_RESULT), sizes, sizes, dtypes, steps)
def test_rows_in_any_layout(name: str, rows: int, length: int, dtype: Any, moves: list[int]) -> None:
    check_apart(CASES[name], (rows, length), dtype, moves)


@examples(60)
@given(
    st.sampled_from(["L1", "Max", "L2"]),
    st.tuples(sizes, st.sampled_from([1, 2, 3]), sizes),
    st.sampled_from([[0], [1], [2], [0, 1], [1, 2], [0, 2], []]),
    dtypes,
    steps,
)
def test_reductions_in_any_layout(
    name: str, shape: tuple[int, ...], axes: list[int], dtype: Any, moves: list[int]
) -> None:
    check_apart(reduction(name, axes), shape, dtype, moves)


@pytest.mark.parametrize("moves", [[1, 1, 1, 1], [1, 2, -1, 2]])
@pytest.mark.parametrize("name", CHANNELS)
def test_images_in_any_layout(name: str, moves: list[int]) -> None:
    for shape in ((2, 4, 7, 5), (1, 2, 33), (2, 8, 1, 1)):
        check_apart(CHANNELS[name], shape, np.float32, moves)


@pytest.mark.parametrize("name", ["softmax", "layer", "softmax of the first axis"])
def test_results_have_equal_bits_on_any_number_of_threads(name: str) -> None:
    for shape in ((1024, 512), (3, 200_000), (4000, 12)):
        given = operands(CASES[name], shape)
        proto = CASES[name].proto(shape)
        runs = [
            irc.compile(proto, "", backend=Native(), options=irc.Options(threads=n)).run(
                dict(zip(("x", "p0", "p1"), given))
            )
            for n in (1, 2, 3)
        ]
        for other in runs[1:]:
            for key, value in runs[0].items():
                np.testing.assert_array_equal(other[key], value)


def test_results_are_made_in_planned_memory() -> None:
    """Also those of operators whose NumPy kernels cannot be given an array, and where they have to do."""
    node = helper.make_node("LayerNormalization", ["x", "p"], ["h"])
    behind = helper.make_node("MatMul", ["h", "w"], ["y"])
    w = np.eye(40, dtype=np.float32)
    for p in (np.ones(40, np.float32), np.ones((3, 5, 40), np.float32)):
        proto = model([node, behind], ["x", "p"], ["y"], w=w)
        x = np.random.default_rng(0).standard_normal((3, 5, 40)).astype(np.float32)
        native = irc.compile(proto, "", backend=Native())
        for _ in range(3):
            found = native.run({"x": x, "p": p})["y"]
        assert native.counters.planned
        np.testing.assert_allclose(found, standardized(x, (-1,))[0], rtol=1e-4, atol=1e-5)
    (layer,) = (n for n in native.graph.nodes if n.kind == "onnx::LayerNormalization")
    kernel = Native().bind(layer, bind(layer))
    for strange in (np.zeros((3, 0, 40), np.float32), x):
        out = np.full(strange.shape, 7, np.float32)
        assert kernel(strange, w[0] * 0 + 1, out=out) is out
        np.testing.assert_allclose(out, standardized(strange, (-1,))[0], rtol=1e-4, atol=1e-5)


TORCH = typed_ir(
    "x, w: Tensor",
    "a = aten.softmax(x, -1, None); b = aten._log_softmax(x, 0, False); "
    "c = aten.layer_norm(x, [40], w, None, 0.001, False); "
    "d, m, r = aten.native_layer_norm(x, [40], w, w, 0.001)",
    "a, b, c, d, m, r",
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=str)
def test_operators_of_torch(dtype: Any, spy: Spy) -> None:
    x = np.random.default_rng(0).standard_normal((3, 5, 40)).astype(dtype)
    given = {"x": x, "w": np.linspace(0, 2, 40).astype(dtype)}
    found, wanted, count = natively(TORCH, given, spy)
    assert count == 4
    tolerance = 3e-3 if dtype == np.float16 else 1e-5
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=tolerance, atol=tolerance, err_msg=key)


def natively(text: str, feeds: dict[str, Any], spy: Spy) -> tuple[Any, Any, int]:
    """The results of a graph natively and on NumPy, operator by operator, and how many operators are native."""
    made = spy(Group, "kernel")
    found, wanted = (irc.compile(parse_graph(text), "", backend=backend).run(feeds) for backend in (Native(), "numpy"))
    for key, value in wanted.items():
        assert found[key].dtype == value.dtype
        steps = [[step for step, size in zip(x.strides, x.shape) if size > 1] for x in (found[key], value)]
        assert steps[0] == steps[1], key
    return found, wanted, made.call_count


TORCH_REDUCTIONS = (
    "a = aten.sum(x, None); b = aten.sum(x, [0, -1], True, None); "
    "c = aten.amax(x, [1], False); d = aten.amin(x, [], True)"
)
TORCH_MEANS = "m = aten.mean(x, [1], False, None); n = aten.mean(x, None)"


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.uint8, np.bool_], ids=str)
def test_reductions_of_torch(dtype: Any, order: tuple[int, ...], spy: Spy) -> None:
    x = (np.random.default_rng(0).standard_normal((3, 5, 40)) * 9).astype(dtype).transpose(order)
    text = ir("x: Tensor", TORCH_REDUCTIONS, "a, b, c, d")
    if x.dtype.kind == "f":
        text = ir("x: Tensor", f"{TORCH_REDUCTIONS}; {TORCH_MEANS}", "a, b, c, d, m, n")
    found, wanted, count = natively(text, {"x": x}, spy)
    assert count == (6 if x.dtype.kind == "f" else 4)
    tolerance = 3e-3 if dtype == np.float16 else 1e-5
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=tolerance, atol=tolerance, err_msg=key)


TORCH_IMAGES = ir(
    "x, w, b, m, v: Tensor",
    "y = aten.batch_norm(x, w, b, m, v, False, 0.1, 0.0, False); "
    "z = aten.batch_norm(x, None, None, m, w, False, 0.1, 0.1, False); "
    "g = aten.group_norm(x, 3, w, b, 0.1, False); h = aten.group_norm(x, 3, None, None, 0.1, False)",
    "y, z, g, h",
)


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=str)
def test_normalisations_of_images_of_torch(dtype: Any, is_last: bool, spy: Spy) -> None:
    """Channels that come last come last in the results, too, which NumPy then makes."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 6, 5, 7)).astype(dtype)
    if is_last:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    given = {key: rng.uniform(0.5, 1.5, 6).astype(dtype) for key in "wbmv"}
    given["v"][2] = 0  # without epsilon, the factor is infinite
    found, wanted, count = natively(TORCH_IMAGES, {"x": x, **given}, spy)
    assert count == (0 if is_last else 4)
    tolerance = 1e-2 if dtype == np.float16 else 1e-5
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=tolerance, atol=tolerance, err_msg=key)


@pytest.mark.parametrize("name", ["Sum", "Max", "L2", "LogSumExp"])
def test_many_short_rows(name: str) -> None:
    """Each in a vector that is read in part; sums of very short ones are left to NumPy, which adds them faster."""
    for length in (3, 8, 9, 20, 31, 33, 63):
        case = reduction(name, [1])
        given = operands(case, (200, length))
        if name == "Sum" and length < 8:
            with pytest.raises(Unsupported):
                compiled(case.proto((200, length)), given)
        else:
            check(case, given, 32)
