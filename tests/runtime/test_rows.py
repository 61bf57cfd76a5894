"""Softmax and normalisations in blocks of rows give exactly what they give whole."""

from __future__ import annotations

from threading import Barrier, get_ident
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.errors import Error
from irc.runtime.execution import Counters, Run
from irc.runtime.fused import cutting, rows
from irc.runtime.kernels.softmax import log_softmax, softmax
from irc.runtime.model import CompiledModel
from irc.runtime.options import Options
from irc.runtime.plan import Plan, lower
from tests.runtime.helpers import graph_of, run_plan

SHAPES = [(40, 24), (2, 3, 40, 8), (1, 1, 64), (64, 1), (7, 100), (5, 0, 4), (0, 40), (960,), (3, 4, 5, 6, 2)]

WAIT = 60
"""Seconds until a test that would hang fails."""


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "TILE_BYTES", 256)
    monkeypatch.setattr(cutting, "SHARED_TILE_BYTES", 256)
    monkeypatch.setattr(rows, "WORTH_BYTES", 512)


def plan(operator: str, parameters: str = "%x : Tensor", outputs: str = "%y") -> Plan:
    names = ", ".join(p.split()[0] for p in parameters.split(", "))
    typed = ", ".join(f"{name} : Tensor" for name in outputs.split(", "))
    return lower(
        graph_of(f"graph({parameters}):\n  {typed} = onnx::{operator}({names})\n  return ({outputs})", verify=False)
    )


def whole(found: Plan, *inputs: Any) -> list[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "WORTH_BYTES", 1 << 60)
        results, counters = run_plan(found, *inputs)
    assert counters.tiles == 0
    return results


def check(found: Plan, *inputs: Any) -> Counters:
    expected = whole(found, *inputs)
    assert run_plan(found, *inputs)[1].tiles == 0
    for threads in (2, 4):
        results, counters = run_plan(found, *inputs, threads=threads)
        for got, want in zip(results, expected, strict=True):
            assert (got.dtype, got.shape, got.tobytes()) == (want.dtype, want.shape, want.tobytes())
    return counters


@given(
    st.sampled_from(["Softmax", "LogSoftmax"]),
    st.sampled_from(SHAPES),
    st.integers(-3, 3),
    st.sampled_from([np.float32, np.float64, np.float16, ml_dtypes.bfloat16]),
    st.integers(0, 99),
)
def test_softmax(operator, shape, axis, dtype, seed):
    if not -len(shape) <= axis < len(shape):
        axis = -1
    x = (4 * np.random.default_rng(seed).standard_normal(shape)).astype(dtype)
    check(plan(f"{operator}[axis={axis}]"), x)


@given(st.sampled_from(SHAPES), st.integers(-3, -1), st.integers(0, 99), st.sampled_from([np.float32, np.float16]))
def test_normalisations(shape, axis, seed, dtype):
    axis = max(axis, -len(shape))
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).astype(dtype)
    scale, bias = rng.standard_normal((2, *shape[axis:])).astype(dtype)
    of_three = "%x : Tensor, %s : Tensor, %b : Tensor"
    check(plan(f"LayerNormalization[axis={axis}]", of_three), x, scale, bias)
    check(plan(f"LayerNormalization[axis={axis}]", of_three, "%y, %m, %i"), x, scale, bias)
    check(plan(f"RMSNormalization[axis={axis}]", "%x : Tensor, %s : Tensor"), x, scale)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("shape", [(70, 4096), (100, 9001), (30001, 24), (5, 1 << 16)])
@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization"])
def test_blocks_of_their_real_sizes(monkeypatch, operator, shape, dtype):
    """Of few rows NumPy adds, of many something faster: a block has few where the whole has many."""
    monkeypatch.setattr(cutting, "TILE_BYTES", 1 << 18)
    monkeypatch.setattr(cutting, "SHARED_TILE_BYTES", 1 << 20)
    rng = np.random.default_rng(0)
    x, scale = rng.standard_normal(shape).astype(dtype), np.ones(shape[1:], dtype)
    found = plan(operator, "%x : Tensor, %s : Tensor") if "Norm" in operator else plan(operator)
    given = (x, scale) if "Norm" in operator else (x,)
    assert check(found, *given).tiles > 1
    if operator == "LayerNormalization":
        assert check(plan(operator, "%x : Tensor, %s : Tensor", "%y, %m, %i"), *given).tiles > 1


@pytest.mark.parametrize("compute", [softmax, log_softmax])
@pytest.mark.parametrize(("length", "counts"), [(24, (1000, 5461, 8191)), (4096, (4, 5, 63, 64)), (33000, (1, 2, 63))])
def test_a_row_is_the_same_whichever_others_there_are(compute, length, counts):
    x = np.random.default_rng(1).standard_normal((max(9000 if length < 100 else 70, *counts), length))
    expected = compute(x.astype(np.float32), 1)
    for count in counts:
        np.testing.assert_array_equal(compute(x[:count].astype(np.float32), 1), expected[:count])


def test_blocks_are_counted():
    x = np.ones((40, 24), np.float32)
    assert check(plan("Softmax"), x).tiles == 15
    assert check(plan("Softmax[axis=0]"), x).tiles == 0
    assert check(plan("Softmax"), x[:, ::2]).tiles == 0
    assert check(plan("Softmax"), x[:2]).tiles == 0


@pytest.mark.parametrize("placed", [False, True])
def test_two_threads_take_blocks_of_rows(placed):
    """Each waits in its first block until the other one has come to one. (The very first may be computed before.)"""
    barrier, met = Barrier(2, timeout=WAIT), set[int]()

    def meeting(x: Any, out: Any = None) -> Any:
        if x.flat[0] > 0 and get_ident() not in met:
            met.add(get_ident())
            barrier.wait()
        return np.negative(x, out=out)

    (node,) = graph_of("graph(%x : Tensor):\n  %y : Tensor = onnx::Softmax(%x)\n  return (%y)").nodes
    maker = rows.rows_step(node, meeting, (1,), (2,), placed)
    assert maker is not None
    x = np.arange(40 * 24, dtype=np.float32).reshape(40, 24)
    run = Run(Counters(), threads=2)
    frame = [run, x, np.empty_like(x) if placed else None]
    maker(())(frame)
    np.testing.assert_array_equal(frame[2], -x)
    assert run.counters.tiles > 2 == len(met)


def test_a_scale_that_differs_from_row_to_row_is_not_cut():
    x, scale = np.random.default_rng(0).standard_normal((2, 40, 24)).astype(np.float32)
    found = plan("LayerNormalization", "%x : Tensor, %s : Tensor")
    assert check(found, x, scale).tiles == 0
    assert check(found, x, scale[0]).tiles == 15


@pytest.mark.parametrize("threads", [1, 2])
def test_failures_are_those_of_the_whole(threads):
    found = plan("LayerNormalization", "%x : Tensor, %s : Tensor")
    with pytest.raises(Error, match=r"do not broadcast.*inputs: float32\[40, 24\], float32\[7\]") as caught:
        run_plan(found, np.ones((40, 24), np.float32), np.ones(7, np.float32), threads=threads)
    assert caught.value.where == "onnx::LayerNormalization '%y'"
    with pytest.raises(Error, match="axis"):
        run_plan(plan("Softmax[axis=5]"), np.ones((40, 24), np.float32), threads=threads)


@pytest.mark.parametrize("axis", [-1, 1, 2])
def test_blocks_are_written_where_the_memory_plan_has_their_place(axis):
    text = f"""
    graph(%x : Float(4, 10, 24)):
      %a : Float(4, 10, 24) = onnx::Exp(%x)
      %b : Float(4, 10, 24) = onnx::Softmax[axis={axis}](%a)
      %m : Float(4, 10, 24) = onnx::Mul(%b, %a)
      %y : Float(4, 10, 1) = onnx::ReduceSum[axes=[2], since_version=11](%m)
      return (%y)
    """
    model = CompiledModel(graph_of(text), options=Options(threads=2))
    x = np.random.default_rng(0).standard_normal((4, 10, 24)).astype(np.float32)
    (expected,) = whole(lower(graph_of(text)), x)
    for _ in range(3):
        assert model.run({"x": x})["y"].tobytes() == expected.tobytes()
        assert model.counters.tiles == (4 if axis == 1 else 15)
    assert model.counters.planned == 3
