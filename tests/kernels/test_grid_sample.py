"""GridSample and AffineGrid against ONNX Runtime."""

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


def test_places_that_are_no_numbers():
    x = np.ones((1, 1, 2, 2), np.float32)
    wild = np.array([[[[np.nan, 0], [np.inf, 0], [-np.inf, 1e30]]]], np.float32)
    assert run_kernel("GridSample", [x, wild], {}, 20)[0].tolist() == [[[[0, 0, 0]]]]
    border = run_kernel("GridSample", [x, wild], {"padding_mode": "border"}, 20)[0]
    assert border.tolist() == [[[[1, 1, 1]]]]


def test_bad_grids():
    x = values(1, 1, 3, 3)
    for places in (grid(1, 2, 2, 3), grid(2, 2, 2, 2), grid(1, 2, 2)):
        with pytest.raises(Error, match="does not fit"):
            run_kernel("GridSample", [x, places], {}, 20)
    with pytest.raises(Error, match="nothing to sample"):
        run_kernel("GridSample", [x[:, :, :0], grid(1, 2, 2, 2)], {}, 20)
    with pytest.raises(Error, match="no mode"):
        run_kernel("GridSample", [x, grid(1, 2, 2, 2)], {"mode": "quintic"}, 20)


def test_bad_affine_grids():
    for theta, size in (((2, 2, 3), (1, 1, 4, 4)), ((1, 2, 3), (1, 1, 4, 4, 4)), ((1, 1, 2), (1, 1, 4))):
        with pytest.raises(Error, match=r"^IRC421: "):
            run_kernel("AffineGrid", [values(*theta), np.array(size)], {}, 20)
