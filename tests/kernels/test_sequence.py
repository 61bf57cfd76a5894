"""Sequences and optionals."""

from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from tests.arrays import ramp
from tests.kernels.helpers import run_kernel


def at(position: int) -> np.ndarray:
    return np.array(position, np.int64)


THREE = [ramp(2), ramp(3) + 10, ramp(1) + 20]


def run(op: str, *inputs: Any, **attrs: Any) -> Any:
    return run_kernel(op, list(inputs), attrs, None)[0]


def test_positions_out_of_range():
    for op, more in (("SequenceAt", [at(3)]), ("SequenceErase", [at(-4)]), ("SequenceInsert", [ramp(1), at(4)])):
        with pytest.raises(Error, match="out of range"):
            run(op, THREE, *more)
    with pytest.raises(Error, match="out of range"):
        run("SequenceErase", [])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_split(axis):
    x = ramp(4, 5)
    size = x.shape[axis]
    one = run("SplitToSequence", x, axis=axis)
    assert [p.shape[axis] for p in one] == [1] * size
    np.testing.assert_array_equal(np.concatenate(one, axis), x)
    dropped = run("SplitToSequence", x, axis=axis, keepdims=0)
    assert all(p.ndim == 1 for p in dropped)
    np.testing.assert_array_equal(np.stack(dropped, axis), x)
    twos = run("SplitToSequence", x, at(2), axis=axis, keepdims=0)  # which is ignored here
    assert [p.shape[axis] for p in twos] == [2, 2, 1][: -(-size // 2)]
    given = run("SplitToSequence", x, np.array([1, 0, size - 1]), axis=axis)
    assert [p.shape[axis] for p in given] == [1, 0, size - 1]
    for bad in (np.array([1, 1]), at(0)):
        with pytest.raises(Error):
            run("SplitToSequence", x, bad, axis=axis)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(axis):
    parts = [ramp(2, 3), ramp(2, 3) + 10]
    np.testing.assert_array_equal(run("ConcatFromSequence", parts, axis=axis), np.concatenate(parts, axis))
    np.testing.assert_array_equal(run("ConcatFromSequence", parts, axis=axis, new_axis=1), np.stack(parts, axis))
    run("ConcatFromSequence", parts[:1], axis=axis)  # one alone is still copied
    for bad in ([], [ramp(2, 3), ramp(3)]):
        for new_axis in (0, 1):
            with pytest.raises(Error):
                run("ConcatFromSequence", bad, axis=axis, new_axis=new_axis)


def test_optionals():
    x = ramp(2)
    assert run("Optional") is None
    assert run("Optional", x) is x
    assert run("OptionalHasElement", x).item() is True
    assert run("OptionalHasElement", None).item() is False
    assert run("OptionalHasElement", []).item() is True
    assert run("OptionalGetElement", x) is x
    assert run("OptionalGetElement", THREE) is THREE
    with pytest.raises(Error, match="empty"):
        run_optional_get_of_nothing()


def run_optional_get_of_nothing() -> Any:
    from tests.kernels.helpers import bind

    return bind("OptionalGetElement", {}, 18, 1)(None)


@pytest.mark.parametrize("new_axis", [0, 1])
def test_tensors_of_different_types_are_not_concatenated(new_axis):
    sequence = [np.zeros(2, np.float32), np.zeros(2, np.uint64)]
    with pytest.raises(Error, match="different element types, float32, uint64"):
        run_kernel("ConcatFromSequence", [sequence], {"axis": 0, "new_axis": new_axis}, 11)
