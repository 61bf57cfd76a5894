"""GridSample and AffineGrid against ONNX Runtime."""

import tracemalloc

import numpy as np
import pytest

from irc.errors import Error
from tests.kernels.helpers import check_against_ort, run_kernel

RANDOM = np.random.default_rng(0)


def values(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def grid(*shape: int) -> np.ndarray:
    return RANDOM.uniform(-2.5, 2.5, shape).astype(np.float32)  # well outside, too


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [0, 1])
def test_planes(mode, padding, corners):
    attrs = {"padding_mode": padding, "align_corners": corners}
    older = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    for x, places in ((values(2, 3, 4, 5), grid(2, 6, 3, 2)), (values(1, 1, 1, 2), grid(1, 3, 3, 2))):
        check_against_ort("GridSample", [x, places], attrs | {"mode": older}, 16)
        for opset in (20, 22):
            check_against_ort("GridSample", [x, places], attrs | {"mode": mode}, opset)


def test_defaults():
    check_against_ort("GridSample", [values(2, 3, 4, 5), grid(2, 6, 3, 2)], {}, 16)
    check_against_ort("GridSample", [values(2, 3, 4, 5), grid(2, 6, 3, 2)], {}, 20)


def test_a_line():
    x = np.array([[[10.0, 20.0, 40.0]]])
    places = np.array([[[-1.0], [-0.5], [0.0], [1.0]]])
    assert run_kernel("GridSample", [x, places], {"align_corners": 1}, 20)[0].tolist() == [[[10, 15, 20, 40]]]


def test_places_that_are_no_numbers():
    x = np.ones((1, 1, 2, 2), np.float32)
    wild = np.array([[[[np.nan, 0], [np.inf, 0], [-np.inf, 1e30]]]], np.float32)
    assert run_kernel("GridSample", [x, wild], {}, 20)[0].tolist() == [[[[0, 0, 0]]]]
    border = run_kernel("GridSample", [x, wild], {"padding_mode": "border"}, 20)[0]
    assert border.tolist() == [[[[1, 1, 1]]]]


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_an_image_at_a_time_is_read(mode):
    """Beside the result there is work memory for what is read of one image, not of all at every tap."""
    x, places = values(16, 64, 6, 5), grid(16, 30, 10, 2)
    (last,) = run_kernel("GridSample", [x[-1:], places[-1:]], {"mode": mode}, 20)
    tracemalloc.start()
    try:
        (y,) = run_kernel("GridSample", [x, places], {"mode": mode}, 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.9 * y.nbytes
    np.testing.assert_array_equal(y[-1:], last)


def test_bad_grids():
    x = values(1, 1, 3, 3)
    for places in (grid(1, 2, 2, 3), grid(2, 2, 2, 2), grid(1, 2, 2)):
        with pytest.raises(Error, match="does not fit"):
            run_kernel("GridSample", [x, places], {}, 20)
    with pytest.raises(Error, match="nothing to sample"):
        run_kernel("GridSample", [x[:, :, :0], grid(1, 2, 2, 2)], {}, 20)
    with pytest.raises(Error, match="no mode"):
        run_kernel("GridSample", [x, grid(1, 2, 2, 2)], {"mode": "quintic"}, 20)


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("sizes", [(4, 5), (1, 1), (1, 3), (3, 4, 2), (1, 1, 1)])
@pytest.mark.parametrize("batch", [0, 1, 2])
def test_affine_grid(batch, sizes, corners):
    """The function body in the standard fails for a batch of one: it squeezes the batch away."""
    axes = len(sizes)
    inputs = [values(batch, axes, axes + 1), np.array([batch, 2, *sizes])]
    check_against_ort("AffineGrid", inputs, {"align_corners": corners}, 20)
    halves = run_kernel("AffineGrid", [inputs[0].astype(np.float16), inputs[1]], {"align_corners": corners}, 20)[0]
    assert halves.dtype == np.float16
    (empty,) = run_kernel("AffineGrid", [inputs[0], np.array([batch, 2, 0, *sizes[1:]])], {}, 20)
    assert empty.shape == (batch, 0, *sizes[1:], axes)


def test_bad_affine_grids():
    for theta, size in (((2, 2, 3), (1, 1, 4, 4)), ((1, 2, 3), (1, 1, 4, 4, 4)), ((1, 1, 2), (1, 1, 4))):
        with pytest.raises(Error, match=r"^IRC421: "):
            run_kernel("AffineGrid", [values(*theta), np.array(size)], {}, 20)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize(("batch", "channels", "rows"), [(0, 2, 3), (1, 0, 3), (1, 2, 0)])
def test_of_nothing_there_is_nothing(mode, batch, channels, rows):
    (found,) = run_kernel("GridSample", [values(batch, channels, 4, 4), values(batch, rows, 2, 2)], {"mode": mode}, 20)
    assert found.shape == (batch, channels, rows, 2)
