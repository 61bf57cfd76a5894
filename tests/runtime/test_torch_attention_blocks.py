"""``aten::scaled_dot_product_attention`` in blocks of rows gives what its kernel gives of the whole."""

from __future__ import annotations

from threading import Barrier, get_ident
from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from irc.runtime.execution import Counters
from irc.runtime.fused import cutting, heads
from irc.runtime.kernels.aten.attention import attention
from irc.runtime.plan import Plan, lower
from tests.runtime.helpers import graph_of, run_plan

Array = np.ndarray[Any, Any]

WAIT = 60
"""Seconds until a test that would hang fails."""


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "TILE_BYTES", 512)
    monkeypatch.setattr(cutting, "SHARED_TILE_BYTES", 1024)


def plan(with_mask: bool = False, **arguments: object) -> Plan:
    """The operator on ``%q``, ``%k``, ``%v`` and perhaps ``%m``."""
    values = {"mask": None, "dropout": 0.0, "causal": False, "scale": None, "gqa": False} | arguments
    types = {"mask": "Tensor?", "dropout": "float", "causal": "bool", "scale": "float?", "gqa": "bool"}
    constants = "\n".join(
        f"%{name} : {'NoneType' if value is None else types[name].strip('?')} = prim::Constant[value={_text(value)}]()"
        for name, value in values.items()
        if name != "mask" or not with_mask
    )
    mask = ", %mask : Tensor" if with_mask else ""
    return lower(
        graph_of(
            f"""
            graph(%q : Tensor, %k : Tensor, %v : Tensor{mask}):
              {constants}
              %y : Tensor = aten::scaled_dot_product_attention(%q, %k, %v, %mask, %dropout, %causal, %scale, %gqa)
              return (%y)
            """,
            verify=False,
        )
    )


def _text(value: object) -> str:
    return {None: "None", True: "True", False: "False"}.get(value, str(value))  # type: ignore[arg-type]


def check(found: Plan, inputs: list[Array], **arguments: Any) -> Counters:
    """In blocks on any number of threads: the same."""
    with np.errstate(all="ignore"):
        wanted = attention(*inputs, **arguments)
    tiles: set[int] = set()
    for threads in (1, 2, 3):
        (result,), counters = run_plan(found, *inputs, threads=threads)
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape) and counters.kernels == 1
        np.testing.assert_allclose(result, wanted, 2e-3 if result.itemsize == 2 else 1e-5, 1e-3 / result.itemsize**4)
        tiles.add(counters.tiles)
    assert len(tiles) == 1
    return counters


def numbers(*shapes: tuple[int, ...], dtype: Any = np.float32) -> list[Array]:
    rng = np.random.default_rng(sum(map(len, shapes)))
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


QKV = [
    ((2, 3, 20, 8), (2, 3, 16, 8), (2, 3, 16, 4)),
    ((4, 20, 8), (4, 30, 8), (4, 30, 8)),
    ((1, 1, 90, 2), (1, 1, 40, 2), (1, 1, 40, 1)),
    ((2, 40, 1, 8), (2, 40, 9, 8), (2, 40, 9, 8)),
]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shapes", QKV)
@pytest.mark.parametrize("causal", [False, True])
def test_attention(shapes, dtype, causal):
    inputs = numbers(*shapes, dtype=dtype)
    assert check(plan(causal=causal), inputs, is_causal=causal).tiles > 1
    assert check(plan(causal=causal, scale=0.3), inputs, is_causal=causal, scale=0.3).tiles > 1


@pytest.mark.parametrize("mask", [(20, 16), (1, 16), (20, 1), (3, 20, 16), (3, 1, 16), (2, 1, 20, 16), (2, 3, 1, 1)])
@pytest.mark.parametrize("of_bools", [False, True])
def test_masks(mask, of_bools):
    """Some rows are masked whole: their results are zeros."""
    rng = np.random.default_rng(1)
    seen = rng.random(mask) < 0.5
    m = seen if of_bools else np.where(seen, rng.standard_normal(mask), -np.inf).astype(np.float32)
    assert check(plan(True), [*numbers(*QKV[0]), m]).tiles > 1


@pytest.mark.parametrize(
    ("shapes", "arguments"),
    [
        (((90, 8), (40, 8), (40, 4)), {}),  # no heads
        (((2, 3, 20, 8), (1, 3, 16, 8), (1, 3, 16, 4)), {}),  # keys of all batches
        (((2, 6, 20, 8), (2, 3, 16, 8), (2, 3, 16, 4)), {"gqa": True}),
        (((2, 3, 2, 8), (2, 3, 3, 8), (2, 3, 3, 4)), {}),  # few
        (((2, 3, 20, 8), (2, 3, 0, 8), (2, 3, 0, 4)), {}),  # no keys
    ],
)
def test_others_run_whole(shapes, arguments):
    inputs = numbers(*shapes)
    counters = check(plan(**arguments), inputs, enable_gqa=arguments.get("gqa", False))
    assert counters.tiles == 0


def test_dropout_draws_for_all_at_once():
    inputs = numbers(*QKV[0])
    assert run_plan(plan(dropout=0.5), *inputs)[1].tiles == 0


@pytest.mark.parametrize("mask", [(21, 16), (15,), (4, 2, 3, 20, 16)])
def test_masks_that_do_not_fit_fail_as_they_do_whole(mask):
    inputs = [*numbers(*QKV[0]), np.zeros(mask, np.float32)]
    with pytest.raises(Error) as caught:
        run_plan(plan(True), *inputs)
    assert caught.value.message.startswith(f"a mask of shape {list(mask)} for scores of [2, 3, 20, 16]")


def test_a_mask_besides_the_causal_one_is_refused():
    with pytest.raises(Error, match="causal or has a mask"):
        run_plan(plan(True, causal=True), *numbers(*QKV[0], (20, 16)))


@pytest.mark.parametrize("number", [1, 2])
def test_shapes_that_do_not_go_together_fail_as_they_do_whole(number):
    inputs = numbers(*QKV[0])
    inputs[number] = inputs[number][:, :, 1:]
    with pytest.raises(Error, match="aten::scaled_dot_product_attention") as caught:
        run_plan(plan(), *inputs)
    assert "float32[2, 3, 20, 8]" in str(caught.value)


def test_widths_that_do_not_go_together_fail_as_they_do_whole():
    """The message has no shapes of blocks."""
    with pytest.raises(Error) as caught:
        run_plan(plan(), *numbers(QKV[0][0], (2, 3, 16, 7), QKV[0][2]))
    assert caught.value.message.startswith("matrices of shapes [2, 3, 20, 8] and [2, 3, 7, 16]")


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_keys_that_come_later_are_not_even_nan(odd):
    """A score of NaN plus a mask of -inf would be: PyTorch, too, leaves out what rows before it do not see."""
    query, key, value = numbers(*QKV[0])
    key[:, :, 9] = odd
    check(plan(causal=True), [query, key, value], is_causal=True)
    (found,), _ = run_plan(plan(causal=True), query, key, value)
    assert np.isfinite(found[:, :, :9]).all() and np.isnan(found[:, :, 9:]).all()


@pytest.mark.parametrize("arguments", [{}, {"causal": True}])
def test_rows_in_which_all_scores_are_infinitely_low_are_zeros(arguments):
    """Without a mask, too; whole or in blocks."""
    query, key, value = numbers(*QKV[0])
    query = np.abs(query)
    key[1, 2] = -np.inf
    (found,), _ = run_plan(plan(**arguments), query, key, value)
    whole = attention(query, key, value, is_causal=arguments.get("causal", False))
    for result in (found, whole):
        assert not result[1, 2].any() and np.isfinite(result).all()
    np.testing.assert_allclose(found, whole, 1e-5, 1e-6)


def test_queries_without_columns_have_equal_scores():
    query, key, value = numbers((2, 3, 20, 0), (2, 3, 16, 0), (2, 3, 16, 4))
    counters = check(plan(), [query, key, value])
    assert counters.tiles > 1
    mean = value.mean(2, keepdims=True)
    np.testing.assert_allclose(attention(query, key, value), np.broadcast_to(mean, (2, 3, 20, 4)), 1e-5, 1e-6)


def test_two_threads_take_blocks(monkeypatch):
    """Each thread waits in its first block until the other one has come to one: alone it would never end."""
    barrier, met = Barrier(2, timeout=WAIT), set[int]()

    def meeting(query: Array, *others: Any) -> Array:
        if get_ident() not in met:
            met.add(get_ident())
            barrier.wait()
        return attention(query, *others)

    inputs = numbers(*QKV[0])
    found = plan()
    real = heads._in_blocks
    monkeypatch.setattr(heads, "_in_blocks", lambda run, kernel, given: real(run, meeting, given))
    (result,), _ = run_plan(found, *inputs, threads=2)
    np.testing.assert_allclose(result, attention(*inputs), 1e-5, 1e-6)
    assert len(met) == 2
