"""Attention of few rows of each head computes natively what it computes on NumPy, whatever caches its keys lie in."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import Tune, examples
from tests.graphs import typed_ir
from tests.native.guarded import fresh, placed

pytest.importorskip("llvmlite")

import irc
from irc.ir import parse_graph
from irc.native.attention import call_for_attention, layout_of
from irc.native.inner_loops import NativeLoops
from irc.runtime.bounds import CURRENT, NONE, InnerLoops
from irc.runtime.kernels.attention import Form, attend

Array = np.ndarray[Any, Any]
Case = tuple[Array, Array, Array, Form]


class Counting(NativeLoops):
    """Says how often there was code."""

    made = 0

    def attend(self, *operands: Any) -> bool:
        is_made = super().attend(*operands)
        self.made += is_made
        return is_made


def attended(loops: InnerLoops, query: Array, key: Array, value: Array, form: Form, **more: Any) -> Array:
    CURRENT.scope.loops = loops
    try:
        with np.errstate(all="ignore"):
            return attend(query, key, value, form=form, **more)
    finally:
        CURRENT.scope.loops = NONE


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Operands that there is code for: keys and values in caches with room for more, maybe the heads inside."""
    dtype = np.dtype(draw(st.sampled_from(["f4", "f8"])))
    lead = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=2)))
    group, keys = draw(st.integers(1, 3)), draw(st.integers(1, 70))
    width, values = draw(st.sampled_from([16, 32, 128])), draw(st.sampled_from([16, 48, 64]))
    is_inside, room = draw(st.booleans()), draw(st.integers(0, 9))
    rng = np.random.default_rng(draw(st.integers(0, 9)))

    def cache(width: int) -> Array:
        if is_inside:
            found = rng.standard_normal((*lead[:-1], keys + room, lead[-1], width)).astype(dtype).swapaxes(-2, -3)
        else:
            found = rng.standard_normal((*lead, keys + room, width)).astype(dtype)
        return found[..., :keys, :]

    rows = draw(st.integers(1, 3))
    query = rng.standard_normal((*lead[:-1], lead[-1] * group, rows, width)).astype(dtype)
    scale = draw(st.sampled_from([None, 0.3, 2.0]))
    return query, cache(width), cache(values), Form(scale=scale, grouped=group > 1)


def tolerance(dtype: np.dtype[Any]) -> float:
    return 1000 * float(np.finfo(dtype).eps)


@examples(100)
@given(cases(), st.booleans(), st.booleans())
def test_arrays_of_a_call(case: Case, is_masked: bool, has_bias: bool) -> None:
    query, key, value, form = case
    group = query.shape[-3] // key.shape[-3]
    query = query.reshape(*key.shape[:-2], *([group] if form.grouped else []), *query.shape[-2:])
    query, key, value = map(placed, (query, key, value))
    keys = key.shape[-2]
    call = call_for_attention(query, key, value, 0.5, -np.inf if is_masked else None, has_bias)
    dtypes = [np.dtype(np.bool_)] * is_masked + [query.dtype] * has_bias
    more = [placed(np.ones((*query.shape[:-1], keys), dtype)) for dtype in dtypes]
    out = fresh((*query.shape[:-1], value.shape[-1]), query.dtype)
    scores = fresh((call.size, -(-keys // 16) * 16), query.dtype)
    counts = placed(np.array([keys])), placed(layout_of(key, value))
    assert call.run((query, key, value, *counts, scores, *more, out))


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, 3e38])
def test_numbers_that_are_none(special: float) -> None:
    rng = np.random.default_rng(0)
    query, key, value = (rng.standard_normal((2, n, 32), np.float32) for n in (1, 11, 11))
    for place in ((0, 3, 2), (1, 10, 31)):
        for changed in (key, value):
            changed[place] = special
            loops = Counting()
            found, wanted = (attended(each, query, key, value, Form(scale=0.3)) for each in (loops, NONE))
            assert loops.made == 1
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
            changed[place] = 0


def test_what_there_is_no_code_for() -> None:
    x = np.ones((1, 2, 3, 32), np.float32)
    row, loops, form = x[:, :, :1], Counting(), Form()
    deep = np.ones((4, 4, 4, 1, 32), np.float32)[::2, ::2, ::2]
    others: list[tuple[tuple[Array, Array, Array], Form, dict[str, Any]]] = [
        ((x, x, x), form._replace(causal="last"), {}),
        ((row[..., :31], x[..., :31], x), form, {}),
        ((row, x, x[..., :31]), form, {}),
        ((row, x.swapaxes(2, 3).copy().swapaxes(2, 3), x), form, {}),
        ((row.astype("f2"), x.astype("f2"), x.astype("f2")), form, {}),
        ((deep, deep, deep), form, {}),
        ((row, x, x), form._replace(softcap=3.0), {}),
        ((row, x, x), form._replace(causal="first"), {}),
        ((row, x, x), form._replace(zero_rows="nan"), {}),
        ((row, x, x), form, {"bias": np.zeros((1, 1, 1, 3))}),
        ((row, x, x), form, {"sink": np.ones(2, np.float32)}),
    ]
    for operands, other, more in others:
        wanted = attended(NONE, *operands, other, **more)
        np.testing.assert_array_equal(attended(loops, *operands, other, **more), wanted)
    assert loops.made == 0


def test_any_number_of_threads_gives_the_same_bits(tune: Tune) -> None:
    text = typed_ir("q: Float(1, 6, 1, 32); k, v: Float(1, 6, 50, 32)", "a = irc.attention(q, k, v)", "a")
    rng = np.random.default_rng(0)
    given = {name: rng.standard_normal((1, 6, n, 32), np.float32) for name, n in (("q", 1), ("k", 50), ("v", 50))}
    found: list[Array] = []
    for threads, cost in ((1, 0.1), (1, 1e9), (2, 1e9), (3, 1e5)):
        tune("irc.native.inner_loops._NANOSECONDS", cost)
        model = irc.compile(parse_graph(text), options=irc.Options(threads=threads))
        found += [model.run(given)["a"] for _ in range(2)]
    assert all(np.array_equal(x, found[0]) for x in found)
