"""Views that show elements of their memory more than once: nothing is written over them, and none leaves a run."""

import numpy as np
import pytest

from irc.runtime.execution import Run
from tests.graphs import ir
from tests.runtime.helpers import f32, model_of, run

VIEWS = {
    "unfold": "u = aten.unfold(r, 0, 3, 1)",
    "as_strided": "u = aten.as_strided(r, [3, 3], [1, 1], None)",
    "transpose": "u = aten.transpose(aten.unfold(r, 0, 3, 1), 0, 1)",
}
"""Of five elements as nine: a symmetric matrix."""


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("Add(u, w)", lambda u, w: u + w),
        ("Sub(w, u)", lambda u, w: w - u),
        ("Neg(u)", lambda u, w: -u),
        ("Clip(u, 1.0, 3.0)", lambda u, w: np.clip(u, 1, 3)),
    ],
)
def test_nothing_is_written_over_them(view, operation, expected):
    text = ir("x: Float(5); w: Float(3, 3)", f"r: Float(5) = Abs(x); {VIEWS[view]}; v = {operation}", "v")
    x, w = np.arange(5, dtype=np.float32), np.arange(9, dtype=np.float32).reshape(3, 3)
    w.flags.writeable = False
    (v,) = run(text, x, w)
    np.testing.assert_array_equal(v, expected(np.lib.stride_tricks.sliding_window_view(x, 3), w))


@pytest.mark.parametrize("view", VIEWS)
def test_each_element_of_a_result_has_a_place_of_its_own(view):
    model = model_of(ir("x: Float(5)", f"r: Float(5) = Abs(x); {VIEWS[view]}", "u"))
    u = model.run({"x": f32(0, 1, 2, 3, 4)})["u"]
    u[0, 1] = 9
    assert u.tolist() == [[0, 9, 2], [1, 2, 3], [2, 3, 4]]
    assert model.counters.copies == 1


@pytest.mark.parametrize("attributes", ["axis=0, broadcast=1, since_version=6", "since_version=7"])
def test_operators_of_any_version_write_over_the_operand_that_has_the_shape_of_the_result(attributes):
    text = ir("x: Float(2, 2); w: Float(2)", f"y: Float(2, 2) = Add(Abs(x), Abs(w), {attributes})", "y")
    counters = Run()
    (y,) = run(text, f32([1, -2], [-3, 4]), f32(10, -20), counters=counters)
    assert y.tolist() == ([[11, 12], [23, 24]] if "6" in attributes else [[11, 22], [13, 24]])
    assert counters.in_place == 1
