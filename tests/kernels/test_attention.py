"""Attention gives what its definition does, whatever its form, and however its scores are cut into blocks."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.errors import Error
from irc.ir import parse_graph
from irc.runtime.bounds import in_own_scope, in_turn
from irc.runtime.execution import Run
from irc.runtime.kernels import attention
from irc.runtime.kernels.aten.attention import attention as of_torch
from irc.runtime.kernels.attention import Form, attend
from irc.runtime.model import sharing
from irc.runtime.plan import lower
from tests.effort import Tune
from tests.runtime.helpers import graph_of, run_plan

Array = np.ndarray[Any, Any]


@pytest.fixture(params=["whole", "blocks"], autouse=True)
def cut(request: pytest.FixtureRequest, tune: Tune) -> str:
    """Each test with scores as one block, and in blocks of a few rows or heads."""
    if request.param == "blocks":
        tune("irc.runtime.kernels.attention.BLOCK_BYTES", 300)
        tune("irc.runtime.kernels.attention.ROWS", 2)
    return request.param


def numbers(*shapes: tuple[int, ...], dtype: Any = np.float32) -> list[Array]:
    rng = np.random.default_rng(sum(map(len, shapes)))
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def defined(
    query: Array,
    key: Array,
    value: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    form: Form | None = None,
    sink: Array | None = None,
) -> Array:
    """Attention in float64, all scores at once."""
    form = form or Form()
    q, k, v = (x.astype(np.float64) for x in (query, key, value))
    if form.grouped and q.ndim > 2:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], -3) if x.shape[-3] else x for x in (k, v))
    with np.errstate(all="ignore"):
        scores = q @ k.swapaxes(-1, -2) * ((q.shape[-1] or 1) ** -0.5 if form.scale is None else form.scale)
        if form.softcap:
            scores = np.tanh(scores / form.softcap) * form.softcap
        excluded = np.zeros(scores.shape)
        if bias is not None:
            scores, excluded = scores + bias.astype(np.float64), excluded + bias.astype(np.float64)
        if mask is not None:
            scores, excluded = np.where(mask, scores, form.fill), np.where(mask, excluded, form.fill)
        if form.causal:
            rows, keys = scores.shape[-2:]
            seen = np.arange(keys) <= np.arange(rows)[:, None] + (keys - rows if form.causal == "last" else 0)
            scores, excluded = np.where(seen, scores, -np.inf), np.where(seen, excluded, -np.inf)
        if not scores.shape[-1]:
            return scores @ v
        away = np.full(1, -np.inf) if sink is None else sink.astype(np.float64)
        column = np.broadcast_to(away[:, None, None] if scores.ndim > 2 else away[:, None], (*scores.shape[:-1], 1))
        scores = np.concatenate([scores, column], -1)
        highest = scores.max(-1, keepdims=True)
        weights = np.exp(scores - highest)
        weights = (weights / weights.sum(-1, keepdims=True))[..., :-1]
        none = {
            "": np.zeros(highest.shape, bool),
            "nan": np.isnan(weights[..., :1]),
            "masked": np.isneginf(excluded.max(-1, keepdims=True)),
            "lowest": np.isneginf(highest),
        }[form.zero_rows]
        return np.where(none, 0, weights) @ v


ERROR = {2: 1e-2, 4: 2e-5, 8: 1e-12}


def check(*operands: Array | None, form: Form | None = None, sink: Array | None = None) -> Array:
    """In new memory, and in memory that is given."""
    with np.errstate(all="ignore"):
        found = attend(*operands, form=form, sink=sink)  # type: ignore[arg-type]
        out = np.full(found.shape, 7, found.dtype)
        assert attend(*operands, form=form, out=out, sink=sink) is out  # type: ignore[arg-type]
    wanted = defined(*operands, form=form, sink=sink)  # type: ignore[arg-type]
    query = operands[0]
    assert query is not None and found.dtype == query.dtype and found.shape == wanted.shape and found.flags.c_contiguous
    np.testing.assert_array_equal(found, out)
    bound = ERROR[found.itemsize]
    if found.dtype.kind == "V" or found.dtype == ml_dtypes.bfloat16:
        bound = 8e-2
    np.testing.assert_allclose(found.astype(np.float64), wanted, bound, bound)
    return found


QKV = [
    ((60, 8), (40, 8), (40, 5)),
    ((2, 3, 20, 8), (2, 3, 16, 8), (2, 3, 16, 4)),
    ((2, 3, 1, 8), (2, 3, 90, 8), (2, 3, 90, 8)),
    ((1, 1, 300, 2), (1, 1, 300, 2), (1, 1, 300, 1)),
    ((50, 2, 3, 8), (50, 2, 4, 8), (50, 2, 4, 8)),
    ((2, 2, 2, 2, 5, 3), (2, 2, 2, 2, 7, 3), (2, 2, 2, 2, 7, 2)),
    ((2, 3, 20, 8), (1, 3, 16, 8), (16, 4)),  # what broadcasts
    ((3, 20, 8), (5, 1, 16, 8), (3, 16, 4)),
    ((4, 33, 8), (31, 8), (1, 31, 4)),
    ((2, 6, 20, 8), (2, 1, 16, 8), (2, 1, 16, 4)),
    ((2, 1, 20, 8), (2, 6, 16, 8), (2, 6, 16, 4)),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shapes", QKV)
def test_shapes_and_element_types(shapes, dtype):
    check(*numbers(*shapes, dtype=dtype))


@pytest.mark.parametrize("mask", [(5, 2, 3, 20, 16), (2, 3, 20, 16), (20, 16), (4, 1, 20, 1)])
def test_masks_may_have_more_elements_than_scores(mask):
    """As in NumPy: the scores broadcast, too."""
    check(*numbers((1, 1, 1, 8), (1, 8), (mask[-1], 4), mask))
    check(*numbers((1, 8), (1, 1, 1, 8), (mask[-1], 4), mask))


@pytest.mark.parametrize("zero_rows", ["", "nan", "masked", "lowest"])
@pytest.mark.parametrize("keys", [16, 40])
@pytest.mark.parametrize("rows", [20, 400])
def test_rows_without_any_key(zero_rows, keys, rows):
    """They are not numbers, or zeros: as the form says, also where scores themselves are not finite."""
    q, k, v, bias = numbers((2, 3, rows, 8), (2, 3, keys, 8), (2, 3, keys, 4), (rows, keys))
    form = Form(zero_rows=zero_rows)
    bias[[3, 7, 19]] = -np.inf
    found = check(q, k, v, bias, form=form)
    assert (np.isnan(found) if not zero_rows else found == 0)[..., [3, 7, 19], :].all()
    check(q, k, v, None, np.isfinite(bias), form=form)
    q[1, 2, 5] = np.nan
    check(q, k, v, bias, form=form)
    q[0, 0, 4], k[0, 0] = 1, -np.inf
    check(np.abs(q), k, v, form=form)
    v[0, 1, 2, 1] = np.nan
    check(q, k, v, bias, form=form)


def test_small_floats_that_are_masked_by_the_lowest_of_their_type():
    """Scores are rounded, as by several operators: rows that are masked throughout have equal weights."""
    q, k, v = numbers(*QKV[1], dtype=np.float16)
    bias = np.zeros((20, 16), np.float16)
    bias[3] = np.finfo(np.float16).min
    found = attend(q, k, v, bias)
    np.testing.assert_allclose(found[:, :, 3], v.astype(np.float64).mean(2), 1e-2, 1e-2)


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3, 0, 8), (2, 3, 5, 8), (2, 3, 5, 4)),
        ((2, 3, 5, 8), (2, 3, 0, 8), (2, 3, 0, 4)),
        ((2, 3, 5, 0), (2, 3, 4, 0), (2, 3, 4, 4)),
        ((2, 3, 5, 8), (2, 3, 4, 8), (2, 3, 4, 0)),
        ((0, 3, 5, 8), (0, 3, 4, 8), (0, 3, 4, 2)),
        ((2, 0, 5, 8), (2, 0, 4, 8), (2, 0, 4, 2)),
        ((2, 0, 5, 8), (2, 3, 4, 8), (2, 3, 4, 2)),
    ],
)
@pytest.mark.parametrize("causal", ["", "first", "last"])
def test_axes_without_elements(shapes, causal):
    form = Form(causal=causal, grouped=shapes[0][1] != shapes[1][1])
    if form.grouped:
        assert attend(*numbers(*shapes), form=form).shape == (2, 0, 5, 2)
    else:
        check(*numbers(*shapes), form=form)


@pytest.mark.parametrize(
    ("shapes", "form", "message"),
    [
        (((8,), (4, 8), (4, 8)), Form(), "2 dimensions"),
        (((5, 8), (4, 7), (4, 8)), Form(), "other widths"),
        (((5, 8), (4, 8), (3, 8)), Form(), "not as many"),
        (((2, 5, 8), (3, 4, 8), (3, 4, 8)), Form(), "do not broadcast"),
        (((6, 5, 8), (3, 4, 8), (3, 4, 8)), Form(), "do not broadcast"),
        (((4, 5, 8), (3, 4, 8), (3, 4, 8)), Form(grouped=True), "cannot share"),
        (((1, 5, 8), (3, 4, 8), (3, 4, 8)), Form(grouped=True), "cannot share"),
        (((6, 5, 8), (3, 4, 8), (2, 4, 8)), Form(grouped=True), "cannot share"),
        (((2, 5, 8), (2, 4, 8), (2, 4, 8), (3, 5, 4)), Form(), "do not broadcast"),
        (((2, 5, 8), (2, 4, 8), (2, 4, 8), (2, 5, 3)), Form(), "do not broadcast"),
    ],
)
def test_shapes_that_do_not_fit_together(shapes, form, message):
    with pytest.raises(Error, match=message) as caught:
        attend(*numbers(*shapes), form=form)
    assert caught.value.code == "IRC421"


@pytest.mark.parametrize(("shape", "sink"), [((5, 8), (1,)), ((3, 5, 8), (2,)), ((3, 5, 8), (3, 1)), ((3, 5, 8), ())])
def test_sinks_that_do_not_fit(shape, sink):
    with pytest.raises(Error, match=r"^IRC421: .*one number a head"):
        attend(*numbers(shape, shape, shape), sink=np.zeros(sink, np.float32))


@pytest.mark.parametrize("other", ["query", "value", "mask", "integers"])
def test_element_types_that_are_refused(other):
    q, k, v = numbers(*QKV[1])
    mask = np.ones(16, np.int8) if other == "mask" else None
    q = q.astype(np.float64) if other == "query" else q
    v = v.astype(np.float16) if other == "value" else v
    if other == "integers":
        q, k, v = (x.astype(np.int32) for x in (q, k, v))
    with pytest.raises(Error, match=r"^IRC423: "):
        attend(q, k, v, None, mask)


def test_a_bias_of_another_type_of_floats():
    q, k, v, bias = numbers(*QKV[1], (20, 16))
    check(q, k, v, bias.astype(np.float64))
    check(q, k, v, bias.astype(np.float16))
    check(*(x.astype(np.float16) for x in (q, k, v)), bias)


@given(st.data())
def test_any_attention(data: st.DataObject) -> None:
    """Any shapes that go together, in blocks of any size."""
    draw = data.draw
    size = st.integers(1, 6)
    lead = draw(st.lists(size, max_size=2))
    group = draw(size) if lead else 1
    rows, width, keys, out = draw(size), draw(size), draw(st.integers(1, 40)), draw(size)

    def some(shape: list[int]) -> tuple[int, ...]:
        """A shape that broadcasts to ``shape``."""
        kept = shape[draw(st.integers(0, len(shape))) :]
        return tuple(n if draw(st.booleans()) else 1 for n in kept)

    heads = [*lead[:-1], lead[-1] * group] if lead else []
    scores = [*heads, rows, keys]
    inputs: list[Array | None] = [*numbers((*heads, rows, width), (*lead, keys, width), (*lead, keys, out))]
    inputs.append(numbers(some(scores))[0] if draw(st.booleans()) else None)
    inputs.append(np.asarray(numbers(some(scores))[0] > -0.5) if draw(st.booleans()) else None)
    form = Form(
        scale=draw(st.sampled_from([None, 0.5, 1.0, 3.0])),
        softcap=draw(st.sampled_from([0.0, 1.5])),
        causal=draw(st.sampled_from(["", "first", "last"])),
        fill=draw(st.sampled_from([-np.inf, -1e4])),
        zero_rows=draw(st.sampled_from(["", "nan", "masked", "lowest"])),
        grouped=bool(lead),
    )
    sink = None
    if lead and form.zero_rows != "nan" and draw(st.booleans()):
        sink = numbers((draw(st.sampled_from([1, heads[-1]])),))[0] * draw(st.sampled_from([1, 100]))
    before = attention.BLOCK_BYTES, attention.ROWS
    attention.BLOCK_BYTES, attention.ROWS = draw(st.integers(4, 2000)), draw(size)
    try:
        check(*inputs, form=form, sink=sink)
    finally:
        attention.BLOCK_BYTES, attention.ROWS = before


TEXT = """
graph(%q : Float(2, 8, l, 8), %k : Float(2, 2, s, 8), %v : Float(2, 2, s, 8), %m : Bool(l, s)):
  %none : NoneType = prim::Constant()
  %y : Tensor = irc::attention[scale=0.25, softcap=3., causal="last", fill=-100., zero_rows="masked", grouped=1](
    %q, %k, %v, %none, %m)
  return (%y)
""".replace("(\n    %q", "(%q")


def test_the_operator():
    """Its attributes are those of the form."""
    q, k, v = numbers((2, 8, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8))
    mask = np.tri(5, 7, 1, dtype=bool)
    (found,), _ = run_plan(lower(parse_graph(TEXT)), q, k, v, mask)
    form = Form(0.25, 3.0, "last", -100.0, "masked", True)
    np.testing.assert_allclose(found, defined(q, k, v, None, mask, form), 2e-5, 2e-5)


@pytest.mark.parametrize("mask", ["some", "none"])
def test_threads_take_blocks_and_make_no_difference(mask: str) -> None:
    q, k, v = numbers((2, 8, 50, 8), (2, 2, 70, 8), (2, 2, 70, 8))
    seen = np.tri(50, 70, 1, dtype=bool)
    seen[7] &= mask == "some"
    plan = lower(parse_graph(TEXT.replace("fill=-100., ", "")))
    (alone,), _ = run_plan(plan, q, k, v, seen)
    for threads in (2, 3):
        (found,) = in_own_scope(None, sharing(threads), plan.call, [q, k, v, seen], Run())
        np.testing.assert_array_equal(found, alone)
    assert alone[:, :, 7].any() == (mask == "some")


@pytest.mark.parametrize(
    ("attribute", "wrong"),
    [
        ("scale=0.25", 'scale="a"'),
        ("softcap=3.", "softcap=[1, 2]"),
        ('causal="last"', 'causal="later"'),
        ('causal="last"', "causal=1"),
        ('zero_rows="masked"', 'zero_rows="lowest"'),
        ("grouped=1", "grouped=2"),
        ("grouped=1", "grouped=1."),
    ],
)
def test_attributes_are_verified(attribute, wrong):
    graph = graph_of(TEXT.replace(attribute, wrong), verify=False)
    with pytest.raises(Error, match=f"the attribute {wrong.partition('=')[0]}") as caught:
        graph.verify()
    assert caught.value.code == "IRC215"


def test_runs_under_limits_may_stop_between_blocks(cut: str):
    class Guard:
        most_bytes = 1e9
        paces = allocated = products = 0

        def allocate(self, size: int) -> None:
            self.allocated = max(self.allocated, size)

        def work(self, products: int) -> None:
            self.products += products

        def pace(self) -> None:
            self.paces += 1

    guard = Guard()
    q, k, v = numbers((2, 3, 20, 8), (2, 3, 16, 8), (2, 3, 16, 4))
    in_own_scope(guard, in_turn, attend, q, k, v)
    assert guard.products == 2 * 3 * 20 * 16 * (8 + 4)
    assert guard.allocated >= 2 * 3 * 20 * 4 * 4
    assert (guard.paces > 5) == (cut == "blocks")


# -- torch's -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("causal", [False, True])
def test_torch_s(dtype, causal):
    q, k, v = numbers((2, 6, 20, 8), (2, 6, 16, 8), (2, 6, 16, 4), dtype=dtype)
    form = Form(causal="first" if causal else "", zero_rows="lowest")
    np.testing.assert_allclose(
        of_torch(q, k, v, is_causal=causal).astype(float),
        defined(q, k, v, form=form),
        ERROR[q.itemsize],
        ERROR[q.itemsize],
    )
    found = of_torch(q, k[:, :2], v[:, :2], None, 0.0, causal, 0.3, True)
    wanted = defined(q, k[:, :2], v[:, :2], form=form._replace(scale=0.3, grouped=True))
    np.testing.assert_allclose(found.astype(float), wanted, ERROR[q.itemsize], ERROR[q.itemsize])


@pytest.mark.parametrize("mask", [(21, 16), (15,), (4, 2, 3, 20, 16)])
def test_torch_s_masks_that_do_not_fit(mask):
    with pytest.raises(Error) as caught:
        of_torch(*numbers(*QKV[1]), np.zeros(mask, np.float32))
    assert caught.value.message.startswith(f"a mask of shape {list(mask)} for scores of [2, 3, 20, 16]")


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_keys_that_come_later_are_not_even_nan(odd):
    """A score of NaN plus a mask of -inf would be: PyTorch, too, leaves out what rows before it do not see."""
    query, key, value = numbers(*QKV[1])
    key[:, :, 9] = odd
    with np.errstate(all="ignore"):
        found = of_torch(query, key, value, is_causal=True)
    assert np.isfinite(found[:, :, :9]).all() and np.isnan(found[:, :, 9:]).all()


def test_torch_s_dropout_keeps_the_mean():
    query, key = np.zeros((4, 3, 50, 8), np.float32), np.zeros((4, 3, 40, 8), np.float32)
    value = np.ones((4, 3, 40, 2), np.float32)
    found = of_torch(query, key, value, None, 0.5)
    assert abs(found.mean() - 1) < 0.05 and found.std() > 0.05
    np.testing.assert_array_equal(found[..., 0], found[..., 1])
