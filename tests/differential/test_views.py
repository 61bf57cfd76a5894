"""Views and copies against torch: what shares memory with what, and where exactly."""

import re

import numpy as np
import pytest
import torch

from irc.ops import schemas
from tests.arrays import ramp
from tests.differential.helpers import compare, run_both
from tests.graphs import ir
from tests.operators import COPIED

NONE_DEVICE = (None, None, None)


SOURCES = {
    "plain": ramp(2, 3, 4),
    "transposed": ramp(4, 3, 2).T,
    "strided": ramp(4, 3, 8)[::2, :, ::2],
    "offset": ramp(5, 3, 4)[2:4],
    "channels": ramp(2, 4, 3).transpose(0, 2, 1),
    "even gaps": ramp(2, 3, 8)[..., ::2],
}

VIEWS = [
    *((name, ()) for name in "ravel detach alias numpy_T mT adjoint conj positive real".split()),
    *((name, ()) for name in "atleast_1d atleast_3d squeeze lift_fresh".split()),
    *(
        (name, arguments)
        for name, calls in {
            "reshape": [([6, 4],), ([2, -1],), ([24],), ([2, 3, 2, 2],)],
            "view": [([2, 3, 2, 2],), ([24],), ([2, 12],)],
            "flatten": [(0, -1), (1, 2), (0, 1), (1, 1)],
            "unflatten": [(2, [2, 2]), (-1, [-1, 2])],
            "transpose": [(0, 2), (-1, 1)],
            "swapaxes": [(0, 1)],
            "permute": [([2, 0, 1],), ([-1, 0, 1],)],
            "movedim": [(0, 2), ([0, 1], [2, 0])],
            "select": [(0, 1), (-1, -2)],
            "slice": [(1, 1, None, 2), (0, -1, 100, 1), (2, None, -1, 1), (2, 3, 1, 1)],
            "narrow": [(2, 1, 2), (2, -2, 2)],
            "unsqueeze": [(0,), (-1,), (1,)],
            "diagonal": [(0, 0, 1), (1, 1, 2), (-1, 2, 0)],
            "unfold": [(2, 2, 1), (1, 3, 2)],
            "expand": [([5, 2, 3, 4], False), ([-1, 3, -1], False)],
            "as_strided": [([2, 2], [1, 2], 3), ([3, 2], [2, 1], None)],
            "contiguous": [(0,)],
            "chunk": [(2, 2), (3, 1), (5, 2)],
            "split": [(2, 1), (3, 2), ([1, 2], 1)],
            "split_with_sizes": [([1, 3], 2)],
            "tensor_split": [(2, 2), (3, 2), ([1, 2], 2)],
            "hsplit": [(3,)],
            "vsplit": [([1],)],
            "dsplit": [(2,)],
            "unbind": [(0,), (-1,)],
            "view_as": [(ramp(4, 6),)],
            "reshape_as": [(ramp(4, 6),)],
            "expand_as": [(ramp(2, 2, 3, 4),)],
            "broadcast_to": [([2, 2, 3, 4],)],
            "requires_grad_": [(False,)],
        }.items()
        for arguments in calls
    ),
]


@pytest.mark.parametrize("source", SOURCES)
def test_views(source: str) -> None:
    for name, arguments in VIEWS:
        compare(f"aten::{name}", SOURCES[source], *arguments)


@pytest.mark.parametrize("source", [*SOURCES, "one size"])
def test_copied_views(source: str) -> None:
    x = ramp(2, 1, 4) if source == "one size" else SOURCES[source]
    covered = {"t", "view_as_complex", "view_as_real", "narrow"}
    for name, arguments in VIEWS:
        if name in COPIED and not (name == "split" and isinstance(arguments[0], list)):
            covered.add(name)
            compare(f"aten::{name}_copy", x, *arguments)
    assert covered == COPIED
    for arguments in ((0, 1, 1), (2, 1, 2), (2, 1, 9), (-1, 0, 0), (3, 0, 1)):
        compare("aten::narrow_copy", x, *arguments)
    compare("aten::t_copy", x[0])
    compare("aten::view_copy", x, 7)
    compare("aten::view_as_complex_copy", x[..., :2])
    compare("aten::view_as_real_copy", np.ascontiguousarray(x).astype(np.complex64))


def test_there_is_a_copied_form_wherever_torch_has_one() -> None:
    rows = {(s.name, s.overload_name): str(s) for s in torch._C._jit_get_all_schemas()}
    forms = {key for key in rows if key[0].endswith("_copy") and (key[0].removesuffix("_copy"), key[1]) in rows}
    views = {key for key in forms if "(a)" in rows[key[0].removesuffix("_copy"), key[1]]}
    ours = {f"{s.name}.{s.overload}".rstrip(".") for name in COPIED for s in schemas(f"aten::{name}_copy")}
    inner = re.compile("aten::_|.*(indices|values)_copy|aten::lift_fresh_copy")  # PyTorch's own, and sparse tensors
    theirs = {".".join(key).rstrip(".") for key in views if not inner.match(key[0])}
    assert theirs == ours


OVERLAPPING = np.lib.stride_tricks.as_strided(ramp(6), (2, 3), (4, 8))[:]


@pytest.mark.filterwarnings("ignore:Setting the strides")
@pytest.mark.parametrize("name", "transpose_ swapaxes_ swapdims_".split())
def test_turned_in_place(name: str) -> None:
    for x in [*SOURCES.values(), ramp(3, 1, 2), ramp(2, 0, 3), np.broadcast_to(ramp(3), (2, 2, 3)), OVERLAPPING]:
        for dims in ((0, 1), (-1, 0), (1, 1), (0, x.ndim)):
            compare(f"aten::{name}", x, *dims)
    for dims in ((0, 0), (0, -1), (0, 1)):
        compare(f"aten::{name}", ramp(3), *dims)
        compare(f"aten::{name}", np.array(3.0, np.float32), *dims)


@pytest.mark.filterwarnings("ignore:Setting the strides")
def test_all_who_hold_a_tensor_see_it_turned_but_not_its_views() -> None:
    text = ir("""
        x: Tensor -> out
        y = mul(x, x); row = select(y, 0, 1); held: "Tensor[]" = prim.ListConstruct(y); before: "int[]" = size(y)
        out: "(Tensor, Tensor, Tensor[], Tensor, int[])" = prim.TupleConstruct(y, row, held, add_(t_(y), 1, 1), before)
    """)
    run_both(text, [ramp(2, 3)])


IMAGES = {
    "plain": ramp(2, 3, 4, 5),
    "channels last": ramp(2, 4, 5, 3).transpose(0, 3, 1, 2),
    "odd": ramp(3, 2, 5, 4).transpose(1, 0, 3, 2),
}


@pytest.mark.parametrize("image", IMAGES)
def test_memory_formats(image: str) -> None:
    x = IMAGES[image]
    for number in (0, 2):
        compare("aten::contiguous", x, number)
        compare("aten::is_contiguous", x, number)
    for number in (None, 0, 1, 2):
        compare("aten::clone", x, number)
        compare("aten::to", x, 6, False, False, number)
        compare("aten::to", x, 7, False, False, number)
    for name in ("zeros_like", "ones_like"):
        for number in (None, 0, 1, 2):
            compare(f"aten::{name}", x, None, *NONE_DEVICE, number)
    compare("aten::contiguous", ramp(2, 3, 4, 5, 6), 3)
    compare("aten::full_like", x, 2.5, None, *NONE_DEVICE, None)


def test_writing_through_views() -> None:
    x = ramp(3, 4)
    compare("aten::copy_", x, ramp(4), False)
    compare("aten::copy_", x.T, ramp(4, 3, dtype="int64"), False)
    compare("aten::copy_", x[1:, ::2], ramp(2, 2), False)
    compare("aten::copy", x, ramp(4), False)
    compare("aten::copy", x.T, ramp(4, 3, dtype="int64"), False)
    compare("aten::fill_", x[:, 1], 7)
    compare("aten::fill_", ramp(3, dtype="int64"), 2.7)
    compare("aten::fill_", x, np.array(5, np.int64))
    compare("aten::zero_", x[::2])
    compare("aten::fill", x.T, 3.5)
    program = ir("""
        x: Tensor -> all
        y = clone(x, None); row = select(y, 0, 1); part = slice(y, 1, 0, 2, 1); a = add_(row, 2, 1); b = mul_(part, 2)
        t = transpose(part, 0, 1); flat = reshape(t, [6]); c = add_(flat, 2, 1)
        all: "Tensor[]" = prim.ListConstruct(x, y, row, part, t, flat)
    """)
    run_both(program, [ramp(3, 4)])
