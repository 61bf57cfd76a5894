"""Attention in blocks of rows gives what its operators give one by one, without scores of full size."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from threading import Barrier, get_ident
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irc
from irc.errors import Error
from irc.ir import parse_graph
from irc.runtime.execution import Counters, Run
from irc.runtime.fused import attention, cutting
from irc.runtime.fused.attention import Attention
from irc.runtime.plan import Plan
from irc.runtime.threads import blas, processors
from tests.runtime.attention_groups import close, group, make_blocks_small, numbers, one_by_one, outcome
from tests.runtime.helpers import run_plan, the_only

WAIT = 60
"""Seconds until a test that would hang fails."""


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    make_blocks_small(monkeypatch)


PLAIN = "%s = onnx::MatMul(%q, %k)\n%p = onnx::Softmax(%s)\n%y = onnx::MatMul(%p, %v)"

MASKED = """%s = onnx::MatMul(%q, %k)
%f = onnx::Mul(%s, %scale)
%a = onnx::Add(%mask, %f)
%p = onnx::Softmax(%a)
%y = onnx::MatMul(%p, %v)"""


def check(plan: Plan, *inputs: Any, operators: int) -> Counters:
    """In blocks on any number of threads: the same, and the blocks are the same."""
    wanted = one_by_one(plan, *inputs)
    tiles: set[int] = set()
    for threads in (1, 2, 3):
        (found,), counters = run_plan(plan, *inputs, threads=threads)
        close(found, wanted)
        assert (counters.tiled_groups, counters.kernels) == (1, operators)
        tiles.add(counters.tiles)
    assert len(tiles) == 1 and counters.tiles > 1
    return counters


QKV = [
    ((60, 8), (8, 40), (40, 5)),
    ((2, 3, 20, 8), (2, 3, 8, 16), (2, 3, 16, 4)),
    ((2, 3, 1, 8), (2, 3, 8, 90), (2, 3, 90, 8)),
    ((1, 1, 300, 2), (1, 1, 2, 300), (1, 1, 300, 1)),
    ((2, 3, 20, 8), (1, 3, 8, 16), (16, 4)),
    ((3, 20, 8), (5, 1, 8, 16), (3, 16, 4)),
    ((4, 33, 8), (8, 31), (1, 31, 4)),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shapes", QKV)
def test_attention(shapes, dtype):
    check(group(PLAIN), *numbers(*shapes, dtype=dtype), operators=3)


MASKS = [(16,), (20, 16), (20, 1), (1, 20, 16), (2, 1, 1, 16), (2, 1, 20, 16), (2, 3, 20, 16), (1, 3, 1, 1), (), (1,)]


@pytest.mark.parametrize("scale", [(), (1,), (1, 1, 1, 1)])
@pytest.mark.parametrize("mask", MASKS)
def test_masks_are_cut_where_they_have_rows(mask, scale):
    """Factors: what is added to a whole row makes no difference."""
    inputs = numbers((2, 3, 20, 8), (2, 3, 8, 16), (2, 3, 16, 4), mask, scale)
    check(group(MASKED.replace("Add", "Mul"), "q k v mask scale"), *inputs, operators=5)


def test_each_row_stands_where_it_belongs():
    """Scores so large that a query sees one key: results are that key's values to the last bit."""
    rng = np.random.default_rng(0)
    at = rng.integers(0, 32, (2, 3, 50))
    keys = np.eye(32, dtype=np.float32)
    v = rng.standard_normal((2, 3, 32, 4)).astype(np.float32)
    plan = group(PLAIN)
    for threads in (1, 3):
        (y,), counters = run_plan(plan, 1e4 * keys[at], keys, v, threads=threads)
        assert counters.tiles > 4
        np.testing.assert_array_equal(y, np.take_along_axis(v, at[..., None], -2))


SHARED = """%s = onnx::MatMul(%q, %k)
%apart = onnx::Reshape(%s, %to_heads)
%a = onnx::Add(%apart, %mask)
%p = onnx::Softmax[axis=-1](%a)
%r = onnx::Reshape(%p, %to_rows)
%y = onnx::MatMul(%r, %v)"""


@pytest.mark.parametrize("mask", [(14,), (9, 14), (2, 1, 9, 14), (2, 6, 9, 14), (6, 1, 1), (1, 6, 9, 1), (1, 9, 14)])
@pytest.mark.parametrize("shared", [1, 2, 6])
@pytest.mark.parametrize("keys", ["own", "of all"])
def test_heads_that_share_keys(mask, shared, keys):
    """Six heads of nine queries; those that share keys are the rows of one product."""
    rows = 6 // shared * 9
    lead = (2, shared) if keys == "own" else (1, 1) if shared == 1 else (1, shared)
    inputs = numbers((2, shared, rows, 8), (*lead, 8, 14), (*lead, 14, 4), mask)
    targets = [np.array([0, 6, -1, 14]), np.array([2, shared, rows, -1])]
    plan = group(SHARED.replace("Add", "Mul"), "q k v mask to_heads to_rows")
    check(plan, *inputs, *targets, operators=6)


def test_queries_that_lie_otherwise():
    """What is reshaped for heads that share keys need not be contiguous."""
    q, k, v, mask = numbers((54, 2, 2, 8), (2, 2, 8, 14), (2, 2, 14, 4), (14,))
    targets = [np.array([2, 6, 18, 14]), np.array([2, 2, 54, 14])]
    check(group(SHARED, "q k v mask to_heads to_rows"), q.transpose(1, 2, 0, 3), k, v, mask, *targets, operators=6)


@pytest.mark.parametrize(
    ("to_heads", "to_rows"),
    [
        ([2, 6, 9, 14], [2, 54, 1, 14]),  # other heads share keys then
        ([2, 3, 18, 14], [2, 2, 27, 14]),  # 2 heads are not shared by 3
        ([2, 108, 14], [2, 2, 27, 14]),
        ([2, 2, 14, 27], [2, 2, 27, 14]),
        ([4, 1, 27, 14], [2, 2, 27, 14]),
        ([1, 6, 9, 28], [2, 2, 27, 14]),  # rows of other lengths
    ],
)
def test_other_reshapes_run_one_by_one(to_heads, to_rows):
    q, k, v, mask = numbers((2, 2, 27, 8), (2, 2, 8, 14), (1, 1, 14, 4), (1,))
    plan = group(SHARED, "q k v mask to_heads to_rows")
    inputs = [q, k, v, mask, np.array(to_heads), np.array(to_rows)]
    counters = Counters()
    wanted = outcome(lambda: one_by_one(plan, *inputs))
    found = outcome(lambda: plan.call(inputs, Run(counters, threads=2))[0])
    np.testing.assert_array_equal(found, wanted)
    assert counters.tiled_groups == 0


def test_masks_before_heads_are_apart():
    """A mask on the rows of all heads that share keys, one on each head's: no one shape fits both."""
    text = SHARED.replace("%apart = onnx::Reshape(%s,", "%t = onnx::Add(%s, %early)\n%apart = onnx::Reshape(%t,")
    q, k, v, mask, early = numbers((2, 2, 27, 8), (2, 2, 8, 14), (1, 1, 14, 4), (9, 14), (27, 14))
    targets = [np.array([2, 6, 9, 14]), np.array([2, 2, 27, 14])]
    plan = group(text, "q k v mask to_heads to_rows early")
    (found,), counters = run_plan(plan, q, k, v, mask, *targets, early)
    close(found, one_by_one(plan, q, k, v, mask, *targets, early))
    assert counters.tiled_groups == 0


@pytest.mark.parametrize("axis", [-1, 3])
def test_heads_that_share_keys_without_a_mask(axis):
    """It makes no difference then whether they have an axis of their own."""
    text = SHARED.replace("[axis=-1]", f"[axis={axis}]").replace("%a =", "%a : Float(*, *, *, *) =")
    text = text.replace("Add(%apart, %mask)", "Tanh(%apart)")
    inputs = [*numbers((2, 2, 27, 8), (2, 2, 8, 14), (1, 1, 14, 4)), np.array([2, 6, 9, 14]), np.array([2, 2, 27, 14])]
    check(group(text, "q k v to_heads to_rows"), *inputs, operators=6)


@pytest.mark.parametrize("axis", [-1, 3])
def test_the_softmax_goes_along_rows_whatever_that_is_called(axis):
    """By its number, the last axis is another one where heads that share keys have an axis of their own."""
    q, k, v, mask = numbers((2, 2, 27, 8), (2, 2, 8, 14), (1, 1, 14, 4), (9, 14))
    inputs = [q, k, v, mask, np.array([2, 6, 9, 14]), np.array([2, 2, 27, 14])]
    text = SHARED.replace("[axis=-1]", f"[axis={axis}]").replace("%a =", "%a : Float(*, *, *, *) =")
    plan = group(text, "q k v mask to_heads to_rows")
    (found,), counters = run_plan(plan, *inputs, threads=2)
    close(found, one_by_one(plan, *inputs))
    assert counters.tiled_groups == (1 if axis == -1 else 0)


def test_old_versions_take_the_last_axis_by_its_number():
    text = PLAIN.replace("Softmax(", "Softmax[axis=3, since_version=11](").replace("%s =", "%s : Float(*, *, *, *) =")
    plan = group(text)
    check(plan, *numbers(*QKV[1]), operators=3)


@pytest.mark.parametrize("softmax", ["[axis=3]", "[since_version=11]"])
def test_a_softmax_along_another_axis_than_types_say(softmax):
    """It goes along the last axis of what is stated, but scores have an axis more."""
    stated = "Float(*, *, *, *)" if "axis" in softmax else "Float(*, *)"
    text = PLAIN.replace("Softmax(", f"Softmax{softmax}(").replace("%s =", f"%s : {stated} =")
    lead = (2, 2, 3) if "axis" in softmax else (3,)
    inputs = numbers(*[(*lead, *matrix) for matrix in ((20, 8), (8, 16), (16, 4))])
    plan = group(text)
    (found,), counters = run_plan(plan, *inputs)
    close(found, one_by_one(plan, *inputs))
    assert counters.tiled_groups == 0


def test_the_last_product_of_one_may_be_the_first_of_another():
    """Only one of the two runs in blocks: the other one's operators come after it."""
    text = f"{PLAIN.replace('%y', '%t')}\n%u = onnx::Softmax(%t)\n%y = onnx::MatMul(%u, %w)"
    inputs = numbers(*QKV[1][:2], (2, 3, 16, 24), (2, 3, 24, 4))
    check(group(text, "q k v w"), *inputs, operators=5)


@pytest.mark.parametrize(
    ("operators", "extra"),
    [
        ("%a = onnx::Where(%x, %s, %low)", [np.tri(20, 16, dtype=bool), np.array(-1e9, np.float32)]),
        ("%a = onnx::Where(%x, %low, %s)", [np.eye(20, 16, dtype=bool), np.array([-1e9], np.float32)]),
        ("%b = onnx::Div(%s, %x)\n%c = onnx::Tanh(%b)\n%a = onnx::Mul(%c, %low)", [np.array(30, np.float32)] * 2),
        ("%b = onnx::Cast[to=1](%s)\n%c = onnx::Neg(%b)\n%a = onnx::Cast[to=11](%c)", []),
        ("%a = onnx::Clip(%s, %x, %low)", [np.array(-0.5, np.float32), np.array(0.5, np.float32)]),
        ("%a = onnx::Max(%x, %s, %low)", [np.zeros((3, 1, 1), np.float32), np.zeros((20, 1), np.float32)]),
        ("%a = onnx::Mul(%s, %s)", []),
    ],
    ids=["where", "or else", "softcap", "types", "clip", "several", "square"],
)
def test_operators_between(operators, extra):
    text = PLAIN.replace("%p = onnx::Softmax(%s)", f"{operators}\n%p = onnx::Softmax(%a)")
    q, k, v = numbers(*QKV[1], dtype=np.float64 if "to=11" in operators else np.float32)
    inputs = [q, k, v, *extra]
    plan = group(text, " ".join(["q", "k", "v", "x", "low"][: len(inputs)]))
    if "Mul(%s, %s)" in operators:  # its operand is used twice: not known as attention
        assert run_plan(plan, *inputs)[1].tiled_groups == 0
    else:
        check(plan, *inputs, operators=text.count("onnx::"))


def test_half_precision_with_a_softmax_of_single():
    """As exporters write it: scores are cast, and the weights are cast back. Two buffers serve all operators."""
    text = PLAIN.replace("Softmax(%s)", "Softmax(%f)").replace("%p =", "%f = onnx::Cast[to=1](%s)\n%w =")
    text = text.replace("%y =", "%p = onnx::Cast[to=10](%w)\n%y =")
    counters = check(group(text), *numbers(*QKV[1], dtype=np.float16), operators=5)
    assert counters.tile_bytes % (16 * (2 + 4)) == 0


def test_scores_that_are_text_for_a_while_run_one_by_one():
    text = PLAIN.replace("Softmax(%s)", "Softmax(%f)").replace(
        "%p =", "%t = onnx::Cast[to=8](%s)\n%f = onnx::Cast[to=1](%t)\n%p ="
    )
    plan = group(text)
    inputs = numbers(*QKV[1])
    (found,), counters = run_plan(plan, *inputs)
    close(found, one_by_one(plan, *inputs))
    assert counters.tiled_groups == 0


def test_rows_without_any_key():
    """Where everything is masked, results are zeros."""
    text = MASKED.replace("onnx::Softmax", "irc::masked_softmax[axis=-1]")
    q, k, v = numbers(*QKV[1])
    mask = np.zeros((20, 16), np.float32)
    mask[[3, 7, 19]] = -np.inf
    plan = group(text, "q k v mask scale")
    check(plan, q, k, v, mask, np.array(1, np.float32), operators=5)
    assert not run_plan(plan, q, k, v, mask, np.array(1, np.float32))[0][0][..., [3, 7, 19], :].any()


TORCH_CONSTANTS = """
%dim : int = prim::Constant[value=-1]()
%none : NoneType = prim::Constant()
%half : float = prim::Constant[value=0.5]()
%one : int = prim::Constant[value=1]()
%wide : int = prim::Constant[value=6]()
%narrow : int = prim::Constant[value=5]()
%no : bool = prim::Constant[value=0]()
"""

OF_TORCH = """%s = aten::matmul(%q, %k)
%d = aten::mul(%s, %half)
%a = aten::add(%d, %m, %one)
%p = aten::softmax(%a, %dim, %none)
%y = aten::matmul(%p, %v)"""

OF_HALVES = """%s = aten::matmul(%q, %k)
%a = aten::masked_fill(%s, %m, %half)
%w = aten::softmax(%a, %dim, %wide)
%p = aten::to(%w, %narrow, %no, %no, %none)
%y = aten::matmul(%p, %v)"""


@pytest.mark.parametrize("mask", [(), (16,), (20, 1), (2, 1, 1, 16), (2, 3, 20, 16)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_attention_of_torch(mask, dtype):
    inputs = numbers((2, 3, 20, 8), (2, 3, 8, 16), (2, 3, 16, 4), mask, dtype=dtype)
    check(group(OF_TORCH, "q k v m", TORCH_CONSTANTS), *inputs, operators=5)


def test_attention_of_torch_in_batches():
    text = OF_TORCH.replace("aten::matmul", "aten::bmm")
    check(group(text, "q k v m", TORCH_CONSTANTS), *numbers((6, 20, 8), (6, 8, 16), (6, 16, 4), (20, 16)), operators=5)


@pytest.mark.parametrize("mask", [(20, 16), (2, 1, 1, 16)])
def test_attention_of_torch_with_a_softmax_of_single(mask):
    """Conversions that do nothing give their operand itself."""
    plan = group(OF_HALVES, "q k v m", TORCH_CONSTANTS)
    seen = np.random.default_rng(0).random(mask) < 0.3
    check(plan, *numbers(*QKV[1], dtype=np.float16), seen, operators=5)
    same = group(OF_HALVES.replace("%narrow", "%wide"), "q k v m", TORCH_CONSTANTS)
    check(same, *numbers(*QKV[1]), seen, operators=5)


def test_operators_behind_the_softmax():
    text = PLAIN.replace("%y =", "%w = onnx::Where(%mask, %p, %none)\n%y =").replace("MatMul(%p", "MatMul(%w")
    q, k, v = numbers(*QKV[1])
    plan = group(text, "q k v mask none")
    check(plan, q, k, v, np.tri(20, 16, dtype=bool), np.array(0, np.float32), operators=4)


@pytest.mark.parametrize(
    ("shapes", "mask"),
    [
        (((2, 3, 20, 8), (2, 3, 8, 16), (2, 3, 16, 4)), (4, 1, 1, 1, 1)),  # more axes than the scores
        (((1, 3, 40, 8), (3, 8, 16), (1, 16, 4)), (5, 1, 1, 1)),  # more batches
        (((2, 3, 40, 8), (2, 3, 8, 1), (2, 3, 16, 4)), (16,)),  # more keys
        (((3, 40, 8), (3, 8, 16), (5, 1, 16, 4)), ()),  # values for more batches than scores
    ],
)
def test_what_makes_more_of_the_scores_runs_one_by_one(shapes, mask):
    inputs = [*numbers(*shapes, mask), np.array(1, np.float32)]
    plan = group(MASKED, "q k v mask scale")
    (found,), counters = run_plan(plan, *inputs, threads=2)
    np.testing.assert_array_equal(found, one_by_one(plan, *inputs))
    assert counters.tiled_groups == 0 and counters.kernels == 5


@pytest.mark.parametrize("number", range(3))
def test_shapes_that_do_not_go_together_fail_as_they_do_one_by_one(number):
    inputs = numbers(*QKV[1])
    inputs[number] = inputs[number][:, :, 1:]
    plan = group(PLAIN)
    if number == 0:  # fewer queries
        check(plan, *inputs, operators=3)
        return
    with pytest.raises(Error) as wanted:
        one_by_one(plan, *inputs)
    with pytest.raises(Error) as caught:
        run_plan(plan, *inputs)
    assert str(caught.value) == str(wanted.value) and caught.value.where.startswith("onnx::MatMul")


@pytest.mark.parametrize("shapes", [((8,), (8, 400), (400, 4)), ((60, 8), (8,), (60,)), ((60, 8), (8, 60), (60,))])
def test_vectors_run_one_by_one(shapes):
    inputs = numbers(*shapes)
    plan = group(PLAIN)
    (found,), counters = run_plan(plan, *inputs, threads=2)
    np.testing.assert_array_equal(found, one_by_one(plan, *inputs))
    assert counters.tiled_groups == 0


@pytest.mark.parametrize("what", [np.array(1, np.float32), None])
@pytest.mark.parametrize("number", range(3))
def test_what_is_no_matrix_is_an_error_of_its_product(number, what):
    inputs: list[Any] = numbers(*QKV[1])
    inputs[number] = what
    with pytest.raises(Error) as caught:
        run_plan(group(PLAIN), *inputs)
    assert caught.value.where.startswith("onnx::MatMul")


def test_small_scores_are_not_cut():
    plan = group(PLAIN)
    inputs = numbers((2, 4, 8), (2, 8, 4), (2, 4, 8))
    (found,), counters = run_plan(plan, *inputs, threads=2)
    close(found, one_by_one(plan, *inputs))
    assert counters.tiled_groups == 0 and counters.kernels == 3


@pytest.mark.parametrize("shapes", [((0, 9), (9, 50), (50, 2)), ((90, 0), (0, 50), (50, 2)), ((90, 9), (9, 0), (0, 2))])
def test_nothing(shapes):
    inputs = numbers(*shapes)
    plan = group(PLAIN)
    np.testing.assert_array_equal(run_plan(plan, *inputs)[0][0], one_by_one(plan, *inputs))


@pytest.mark.parametrize("layout", ["C", "heads behind rows", "backwards", "repeated"])
def test_operands_lie_as_they_like(layout):
    q, k, v, mask = numbers(*QKV[1], (2, 3, 20, 16))
    if layout == "heads behind rows":  # as a Transpose leaves them
        q, v, mask = (np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) for x in (q, v, mask))
        k = np.ascontiguousarray(k.swapaxes(-1, -2)).swapaxes(-1, -2)
    elif layout == "backwards":
        q, k, v, mask = (x[..., ::-1, ::-1] for x in (q, k, v, mask))
    elif layout == "repeated":
        k, v, mask = (np.broadcast_to(x[:, :1], x.shape) for x in (k, v, mask))
    check(group(MASKED, "q k v mask scale"), q, k, v, mask, np.array(0.5, np.float32), operators=5)


def test_how_scores_are_cut_is_worked_out_once(monkeypatch):
    """For other shapes and element types, and where a Reshape is given other numbers, it is another way."""
    q, k, v, mask = numbers((2, 2, 27, 8), (2, 2, 8, 14), (1, 1, 14, 4), (1,))
    plan = group(SHARED, "q k v mask to_heads to_rows")
    found, kernel = list[Any](), the_only(Attention, plan).operations[3].kernel

    def listening(x: Any, **out: Any) -> Any:
        if not out:
            found.append(x.dtype)
        return kernel(x, **out)

    replace(monkeypatch, plan, 3, listening)
    heads = [([2, 6, 9, 14], 1), ([2, 2, 27, 14], 1), ([2, 54, 1, 14], 1), ([2, 6, 18, 7], 0)]
    for dtype in (np.float32, np.float16):
        for to_heads, tiled in heads * 3:
            inputs = [*(x.astype(dtype) for x in (q, k, v, mask)), np.array(to_heads), np.array([2, 2, 27, 14])]
            (y,), counters = run_plan(plan, *inputs)
            assert counters.tiled_groups == tiled
            close(y, one_by_one(group(SHARED, "q k v mask to_heads to_rows"), *inputs))
    assert found == [np.float32] * 4 + [np.float16] * 4


@pytest.mark.parametrize(("shape", "tiles"), [((2, 90, 8), 6), ((2, 10, 8), 2), ((9, 1, 8), 9)])
def test_blocks_have_some_rows_however_long_these_are(shape, tiles, monkeypatch):
    """Each block reads all keys; of a head with fewer rows, it has all, and of others nothing."""
    monkeypatch.setattr(attention, "ROWS", 30)
    inputs = numbers(shape, (shape[0], 8, 500), (shape[0], 500, 4))
    assert check(group(PLAIN), *inputs, operators=3).tiles == tiles


def test_scores_never_have_full_size(monkeypatch):
    monkeypatch.setattr(cutting, "TILE_BYTES", 1 << 14)
    monkeypatch.setattr(cutting, "SHARED_TILE_BYTES", 1 << 14)
    inputs = [*numbers((2, 500, 8), (2, 8, 500), (2, 500, 8), (500,)), np.array(1, np.float32)]
    plan = group(MASKED, "q k v mask scale")
    run_plan(plan, *inputs)
    tracemalloc.start()
    try:
        (y,), counters = run_plan(plan, *inputs)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert counters.tiled_groups == 1
    assert y.nbytes <= peak < 2 * 500 * 500 * 4 / 10


MODEL = """
graph(%x : Float(2, 3, 20, 8), %k : Float(2, 3, 8, 16), %v : Float(2, 3, 16, 8), %c : Float(2, 3, 20, 8)):
  %q : Float(2, 3, 20, 8) = onnx::Softmax(%x)
  %w : Float(2, 3, 16, 8) = onnx::Softmax(%v)
  %s : Float(2, 3, 20, 16) = onnx::MatMul(%q, %k)
  %p : Float(2, 3, 20, 16) = onnx::Softmax(%s)
  %y : Float(2, 3, 20, 8) = onnx::MatMul(%p, %w)
  %t : Float(2, 3, 20, 8) = onnx::Softmax(%y)
  %z : Float(2, 3, 20, 8) = onnx::Add(%t, %c)
  return (%z)
"""


@pytest.mark.parametrize("threads", [1, 3])
def test_planned_results_are_not_made_over_what_later_blocks_read(threads):
    """Queries are needed by no other operator, and as large as the result: it must have a place of its own."""
    model = irc.compile(parse_graph(MODEL))
    inputs = dict(zip("xkvc", numbers((2, 3, 20, 8), (2, 3, 8, 16), (2, 3, 16, 8), (2, 3, 20, 8))))
    (wanted,) = irc.compile(parse_graph(MODEL), "none").run(inputs).values()
    for _ in range(4):
        (found,) = model.run(inputs, threads=threads).values()
        close(found, wanted)
        assert model.counters.tiled_groups == 1  # in the first run, too: a prompt may be the only one of its length
    if threads == 1:
        assert model.counters.planned == 3
        assert model.counters.arena_bytes == sum(2 * 3 * rows * 8 * 4 for rows in (20, 16, 20))  # of q, w and y


RETURNED = """
graph(%x : Float(2, 3, 20, 8), %k : Float(2, 3, 8, 16), %v : Float(2, 3, 16, 8)):
  %q : Float(2, 3, 20, 8) = onnx::Softmax(%x)
  %y : Float(2, 3, 20, 8), %r : Float(2, 3, 20, 8) = prim::FusionGroup_0(%q, %k, %v)
  %t : Float(2, 3, 20, 8) = onnx::Softmax(%y)
  %z : Float(2, 3, 20, 8) = onnx::Add(%t, %r)
  return (%z)
with prim::FusionGroup_0 = graph(%q : Float(2, 3, 20, 8), %k : Float(2, 3, 8, 16), %v : Float(2, 3, 16, 8)):
  %s : Float(2, 3, 20, 16) = onnx::MatMul(%q, %k)
  %p : Float(2, 3, 20, 16) = onnx::Softmax(%s)
  %y : Float(2, 3, 20, 8) = onnx::MatMul(%p, %v)
  %r : Float(2, 3, 20, 8) = onnx::Relu(%y)
  return (%y, %r)
"""


def test_what_follows_in_the_group_is_not_made_over_what_attention_has_read():
    """The queries' memory is free by then, for anything. Only the sum is in place, and the counters say so."""
    model = irc.compile(parse_graph(RETURNED), "none")
    inputs = dict(zip("xkv", numbers((2, 3, 20, 8), (2, 3, 8, 16), (2, 3, 16, 8))))
    wanted = model.run(inputs, threads=1)["z"]
    for _ in range(3):
        close(model.run(inputs, threads=1)["z"], wanted)
    counters = model.counters
    assert (counters.tiled_groups, counters.planned, counters.in_place) == (1, 3, 1)
    assert counters.arena_bytes == 2 * 2 * 3 * 20 * 8 * 4


def replace(monkeypatch: pytest.MonkeyPatch, plan: Plan, number: int, kernel: Callable[..., Any]) -> None:
    """Give the operator of that number another kernel, and have each operator called in each block."""
    operations = list(the_only(Attention, plan).operations)
    operations[number] = operations[number]._replace(kernel=kernel)
    monkeypatch.setattr(the_only(Attention, plan), "operations", operations)
    monkeypatch.setattr(the_only(Attention, plan), "_scores", None)


@pytest.mark.parametrize("threads", [2, None])
def test_two_threads_take_blocks_with_a_blas_of_one_thread_each(threads, monkeypatch):
    """Each thread waits in its first block until the other one has come to one: alone it would never end.

    Where no number is given, there are as many as processors.
    """
    plan = group(PLAIN)
    inputs = numbers(*QKV[1])
    expected = run_plan(plan, *inputs, threads=2)[0][0]
    blas_threads = blas.one_thread()._get
    barrier, met, all_threads = Barrier(2, timeout=WAIT), set[int](), blas_threads()
    kernel, seen = the_only(Attention, plan).operations[1].kernel, list[int]()

    def meeting(x: Any, **out: Any) -> Any:
        if get_ident() not in met and out:
            met.add(get_ident())
            barrier.wait()
        seen.append(blas_threads())
        return kernel(x, **out)

    replace(monkeypatch, plan, 1, meeting)
    monkeypatch.setattr(processors, "usable_processors", lambda: 2)
    (found,), _ = run_plan(plan, *inputs, threads=threads)
    close(found, expected)
    assert len(met) == 2 and set(seen) == {1} and blas_threads() == all_threads


def test_a_failure_of_none_of_the_operators_is_the_groups(monkeypatch):
    plan = group(PLAIN)

    def nothing(*_: object) -> Any:
        raise MemoryError("no memory for blocks")

    monkeypatch.setattr(attention, "scratch", nothing)
    with pytest.raises(Error, match="no memory for blocks; inputs: float32") as caught:
        run_plan(plan, *numbers(*QKV[1]))
    assert (caught.value.code, caught.value.where) == ("IRC403", "prim::FusionGroup '%y'")


def test_one_thread_is_the_callers(monkeypatch):
    plan = group(PLAIN)
    kernel, seen = the_only(Attention, plan).operations[1].kernel, set[int]()

    def listening(x: Any, **out: Any) -> Any:
        seen.add(get_ident())
        time.sleep(0.001)  # another thread would come
        return kernel(x, **out)

    replace(monkeypatch, plan, 1, listening)
    run_plan(plan, *numbers(*QKV[1]), threads=1)
    assert seen == {get_ident()}


@pytest.mark.parametrize("threads", [1, 3])
def test_profiles_have_each_operator_block_by_block(threads):
    """Its time is its own, on whatever thread; only the result is an array."""
    model = irc.compile(parse_graph(MODEL))
    inputs = dict(zip("xkvc", numbers((2, 3, 20, 8), (2, 3, 8, 16), (2, 3, 16, 8), (2, 3, 20, 8))))
    for _ in range(3):
        (wanted,) = model.run(inputs, threads=threads).values()
    counters = model.counters
    profile = model.profile(inputs, threads=threads)
    np.testing.assert_array_equal(profile.outputs["z"], wanted)
    assert (profile.counters.kernels, profile.counters.tiles) == (counters.kernels, counters.tiles)
    rows = {row.label: row for row in profile.by_node()}
    members = [rows[f"onnx::{name}"] for name in ("MatMul '%s'", "Softmax '%p'", "MatMul '%y'")]
    assert [(row.calls, row.fresh, row.in_place) for row in members] == [(counters.tiles, n, 0) for n in (0, 0, 1)]
    (group,) = profile.by_group()
    assert {row.label for row in group.members} == {row.label for row in members}
    assert group.node.calls == 1 and len(rows) == 8


@pytest.mark.parametrize("threads", [1, 2])
def test_a_kernel_that_fails_in_a_block_is_named(threads, monkeypatch):
    plan = group(PLAIN)
    inputs = numbers(*QKV[1])
    expected = run_plan(plan, *inputs, threads=threads)[0][0]
    kernel, calls = the_only(Attention, plan).operations[1].kernel, list[int]()

    def failing(x: Any, **out: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise ValueError("the third block")
        return kernel(x, **out)

    with monkeypatch.context() as patch:
        replace(patch, plan, 1, failing)
        with pytest.raises(Error, match=r"the third block; inputs: float32\[2, 3, 20, 16\]") as caught:
            run_plan(plan, *inputs, threads=threads)
    assert (caught.value.code, caught.value.where) == ("IRC401", "onnx::Softmax '%p'")
    np.testing.assert_array_equal(run_plan(plan, *inputs, threads=threads)[0][0], expected)


@given(st.data())
def test_any_attention(data: st.DataObject) -> None:
    """Any shapes that go together, any operators between the products, on any number of threads."""
    draw = data.draw
    size = st.integers(1, 9)
    lead = draw(st.lists(size, max_size=2))
    rows, width, keys, out = draw(size), draw(size), draw(st.integers(1, 60)), draw(size)

    def some(shape: list[int]) -> tuple[int, ...]:
        """A shape that broadcasts to ``shape``."""
        kept = shape[draw(st.integers(0, len(shape))) :]
        return tuple(n if draw(st.booleans()) else 1 for n in kept)

    left, right = (lead, list(some(lead))) if draw(st.booleans()) else (list(some(lead)), lead)
    inputs = numbers((*left, rows, width), (*right, width, keys), (*some(lead), keys, out))
    parameters, members, last = ["q", "k", "v"], ["%s = onnx::MatMul(%q, %k)"], "s"
    count = draw(st.integers(0, 4))
    softmax_at = draw(st.integers(0, count))
    for i in range(count + 1):
        if i == softmax_at:
            members.append(f"%p{i} = onnx::Softmax[axis=-1](%{last})")
        elif draw(st.booleans()):
            members.append(
                f"%p{i} = onnx::{draw(st.sampled_from(['Tanh', 'Neg', 'Relu', 'Sigmoid', 'Gelu']))}(%{last})"
            )
        else:
            inputs += numbers(some([*lead, rows, keys]))
            parameters.append(f"m{i}")
            operands = [f"%{last}", f"%m{i}"]
            draw(st.randoms(use_true_random=False)).shuffle(operands)
            kind = draw(st.sampled_from(["Add", "Mul", "Sub", "Max"]))
            members.append(f"%p{i} = onnx::{kind}({', '.join(operands)})")
        last = f"p{i}"
    plan = group("\n".join([*members, f"%y = onnx::MatMul(%{last}, %v)"]), " ".join(parameters))
    wanted = one_by_one(plan, *inputs)
    for threads in (1, 2):
        (found,), counters = run_plan(plan, *inputs, threads=threads)
        close(found, wanted)
        if left == lead:  # else the queries are repeated, which is not looked at when scores seem to be small
            assert counters.tiled_groups == (int(np.prod([*lead, rows, keys])) * 4 > 512)
