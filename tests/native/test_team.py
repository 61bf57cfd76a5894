"""Several threads at one table: results, refusals, calls that fail, errors, and helpers that find nothing to do."""

from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import irc
from irc.ir import Array, Tensor, parse_graph
from irc.native import step_calls, team
from irc.native.panels import features_at_once
from irc.runtime import threads
from irc.runtime.kernels.convolution import convolve
from irc.runtime.model import CompiledModel
from tests.graphs import typed_ir

RNG = np.random.default_rng(11)
HAS_CONVOLUTIONS = features_at_once(8) is not None
"""Without them, the calls between convolutions are too few for a table."""

NET = typed_ir(
    "x: Float(1, 16, 60, 60); v: @Float(24, 16, 3, 3); w: @Float(96, 24, 1, 1); u: @Float(24, 96, 3, 3); "
    "d: @Float(24, 1, 3, 3)",
    "c = Conv(Sigmoid(Conv(x, v, pads=[1, 1, 1, 1])), w); f = Conv(MaxPool(c, kernel_shape=[3, 3]), u)\n"
    "s = Softmax(Concat(f, Conv(f, d, group=24, pads=[1, 1, 1, 1]), axis=1), axis=-1)",
    "s",
)


def f32(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


WEIGHTS = {
    name: Tensor.of(f32(*shape) / 8, name)
    for name, shape in {"v": (24, 16, 3, 3), "w": (96, 24, 1, 1), "u": (24, 96, 3, 3), "d": (24, 1, 3, 3)}.items()
}
IMAGE = f32(1, 16, 60, 60)


def net(threads: int | None = None, backend: str = "native") -> CompiledModel:
    options = irc.Options(threads=threads)
    return irc.compile(parse_graph(NET, WEIGHTS), passes="none", backend=backend, options=options)


def settled(model: CompiledModel) -> CompiledModel:
    """The model, whose next run is in planned memory, by one table."""
    for _ in range(3):
        model.run({"x": IMAGE})
    assert model.counters.compiled >= HAS_CONVOLUTIONS
    return model


def result(model: CompiledModel, x: Array = IMAGE) -> Array:
    return model.run({"x": x})["s"]


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    wanted = result(settled(net(1)))
    np.testing.assert_allclose(wanted, result(net(backend="numpy")), rtol=1e-4, atol=1e-6)
    for number in (2, 3, 7):
        model = settled(net(number))
        for _ in range(20):
            np.testing.assert_array_equal(result(model), wanted)
    assert threads._shared.size >= 6 * HAS_CONVOLUTIONS


def test_runs_at_once_have_helpers_of_their_own() -> None:
    model, plain = settled(net(3)), settled(net(1))
    images = [f32(1, 16, 60, 60) for _ in range(6)]
    wanted = [result(plain, x) for x in images]
    with ThreadPoolExecutor(3) as pool:
        for _ in range(5):
            for found, value in zip(pool.map(lambda x: result(model, x), images), wanted):
                np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e30])
def test_tiles_that_would_overflow_are_computed_in_another_way(threads: int, value: float) -> None:
    model, plain = settled(net(threads)), net(backend="numpy")
    for place in ((0, 0, 0, 0), (0, 7, 30, 31), (0, 15, 59, 59)):
        x = IMAGE.copy()
        x[place] = value
        np.testing.assert_allclose(result(model, x), result(plain, x), rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(result(model), result(plain), rtol=1e-4, atol=1e-6)


@pytest.mark.skipif(not HAS_CONVOLUTIONS, reason="there is no code for this processor")
@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_the_middle_of_a_table_is_raised(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = settled(net(threads))
    wanted, x = result(model), np.full_like(IMAGE, np.nan)

    def fail(image: Array, weights: Array, *others: Any) -> Array:
        if weights.shape[1] < 96:
            return convolve(image, weights, *others)
        raise MemoryError("not so much")

    with monkeypatch.context() as patched:
        patched.setattr(step_calls, "convolve", fail)
        with pytest.raises(irc.Error, match=r"IRC403: onnx::Conv '%f'.*not so much"):
            result(model, x)
    np.testing.assert_array_equal(result(model), wanted)


def test_operands_that_lie_otherwise_are_refused() -> None:
    model, plain = settled(net(2)), net(backend="numpy")
    x = np.asfortranarray(IMAGE)
    np.testing.assert_allclose(result(model, x), result(plain, x), rtol=1e-4, atol=1e-6)


def test_a_helper_leaves_if_there_is_no_table() -> None:
    helper: Thread | None = None

    def interrupted(pieces: int, piece: Any) -> None:
        nonlocal helper
        helper = Thread(target=piece, args=(1,))
        helper.start()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        team.help_of(2, 0)(lambda numbers: True, interrupted)
    assert helper is not None
    helper.join(60)
    assert not helper.is_alive()


@pytest.mark.parametrize("is_over", [False, True])
def test_helpers_leave_when_the_table_is_over(is_over: bool) -> None:
    """Also when it fails, and when they come too late."""

    def table(numbers: Array) -> bool:
        if not is_over:
            raise ValueError("refused")
        return True

    def share(pieces: int, piece: Any) -> None:
        try:
            piece(0)
        finally:
            for number in range(1, pieces):
                piece(number)

    run = team.help_of(2, 64)
    if is_over:
        assert run(table, share)
    else:
        with pytest.raises(ValueError, match="refused"):
            run(table, share)
