"""Views and copies against torch: what shares memory with what, and where exactly."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
import torch

from irc.ops import schemas
from tests.arrays import ramp
from tests.differential.helpers import Typed, compare, run_both
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
    ("reshape", ([6, 4],)),
    ("reshape", ([2, -1],)),
    ("reshape", ([24],)),
    ("reshape", ([2, 3, 2, 2],)),
    ("view", ([2, 3, 2, 2],)),
    ("view", ([24],)),
    ("view", ([2, 12],)),
    ("flatten", (0, -1)),
    ("flatten", (1, 2)),
    ("flatten", (0, 1)),
    ("flatten", (1, 1)),
    ("ravel", ()),
    ("unflatten", (2, [2, 2])),
    ("unflatten", (-1, [-1, 2])),
    ("transpose", (0, 2)),
    ("transpose", (-1, 1)),
    ("swapaxes", (0, 1)),
    ("permute", ([2, 0, 1],)),
    ("permute", ([-1, 0, 1],)),
    ("movedim", (0, 2)),
    ("movedim", ([0, 1], [2, 0])),
    ("select", (0, 1)),
    ("select", (-1, -2)),
    ("slice", (1, 1, None, 2)),
    ("slice", (0, -1, 100, 1)),
    ("slice", (2, None, -1, 1)),
    ("slice", (2, 3, 1, 1)),
    ("narrow", (2, 1, 2)),
    ("narrow", (2, -2, 2)),
    ("unsqueeze", (0,)),
    ("unsqueeze", (-1,)),
    ("unsqueeze", (1,)),
    ("diagonal", (0, 0, 1)),
    ("diagonal", (1, 1, 2)),
    ("diagonal", (-1, 2, 0)),
    ("unfold", (2, 2, 1)),
    ("unfold", (1, 3, 2)),
    ("expand", ([5, 2, 3, 4], False)),
    ("expand", ([-1, 3, -1], False)),
    ("as_strided", ([2, 2], [1, 2], 3)),
    ("as_strided", ([3, 2], [2, 1], None)),
    ("detach", ()),
    ("alias", ()),
    ("contiguous", (0,)),
    ("numpy_T", ()),
    ("mT", ()),
    ("adjoint", ()),
    ("conj", ()),
    ("positive", ()),
    ("real", ()),
    ("chunk", (2, 2)),
    ("chunk", (3, 1)),
    ("chunk", (5, 2)),
    ("split", (2, 1)),
    ("split", (3, 2)),
    ("split", ([1, 2], 1)),
    ("split_with_sizes", ([1, 3], 2)),
    ("tensor_split", (2, 2)),
    ("tensor_split", (3, 2)),
    ("tensor_split", ([1, 2], 2)),
    ("hsplit", (3,)),
    ("vsplit", ([1],)),
    ("dsplit", (2,)),
    ("unbind", (0,)),
    ("unbind", (-1,)),
    ("atleast_1d", ()),
    ("atleast_3d", ()),
    ("view_as", (ramp(4, 6),)),
    ("reshape_as", (ramp(4, 6),)),
    ("expand_as", (ramp(2, 2, 3, 4),)),
    ("broadcast_to", ([2, 2, 3, 4],)),
    ("squeeze", ()),
    ("lift_fresh", ()),
    ("requires_grad_", (False,)),
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


def test_of_ones_and_scalars() -> None:
    x = ramp(1, 3, 1, 2)
    for arguments in ((), (0,), (1,), (-2,), ([0, 2],), ([1],)):
        compare("aten::squeeze", x, *arguments)
        compare("aten::squeeze_", x, *arguments)
    for dim in (0, 2, -1):
        compare("aten::unsqueeze_", ramp(2, 3), dim)
    compare("aten::squeeze_", ramp(3, 1, 2).transpose(2, 1, 0))
    scalar = np.array(3.0, np.float32)
    for name, arguments in (
        ("reshape", ([1, 1],)),
        ("view", ([1],)),
        ("unsqueeze", (0,)),
        ("flatten", (0, -1)),
        ("expand", ([2, 3], False)),
        ("t", ()),
        ("transpose", (0, -1)),
        ("squeeze", ()),
        ("squeeze", (0,)),
        ("atleast_2d", ()),
        ("unfold", (0, 1, 1)),
    ):
        compare(f"aten::{name}", scalar, *arguments)
    compare("aten::t", ramp(2, 3))
    compare("aten::t", ramp(3))
    compare("aten::reshape", ramp(0, 3), [3, 0])
    compare("aten::expand", ramp(3, 1)[:, :0], [2, 3, 0], False)


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
def test_matrices_turned_in_place() -> None:
    for x in [
        ramp(2, 3),
        ramp(3, 2).T,
        ramp(4, 6)[1:3, ::2],
        ramp(3),
        np.array(3.0, np.float32),
        ramp(2, 3, 4),
        ramp(1, 4),
    ]:
        compare("aten::t_", x)


@pytest.mark.filterwarnings("ignore:Setting the strides")
def test_all_who_hold_a_tensor_see_it_turned_but_not_its_views() -> None:
    text = """graph(%x : Tensor):
      %none : NoneType = prim::Constant()
      %zero : int = prim::Constant[value=0]()
      %one : int = prim::Constant[value=1]()
      %y : Tensor = aten::mul(%x, %x)
      %row : Tensor = aten::select(%y, %zero, %one)
      %held : Tensor[] = prim::ListConstruct(%y)
      %before : int[] = aten::size(%y)
      %turned : Tensor = aten::t_(%y)
      %z : Tensor = aten::add_(%turned, %one, %one)
      %out : (Tensor, Tensor, Tensor[], Tensor, int[]) = prim::TupleConstruct(%y, %row, %held, %z, %before)
      return (%out)
    """
    run_both(text, [ramp(2, 3)])


def test_types_and_devices() -> None:
    x = ramp(2, 3)
    for number in (4, 6, 7, 5, 11, 0, 3):
        for copy in (False, True):
            compare("aten::to", x, number, False, copy, None)
            compare("aten::to", x.T, number, False, copy, None)
            compare("aten::to", x.T, number, False, copy, 0)
    compare("aten::to", x, ramp(2, dtype="float64"), False, False, None)
    compare("aten::to", x, Typed("cpu", "Device"), 6, False, False, None)
    compare("aten::to", x, Typed("cpu", "Device"), 7, False, False, None)
    compare("aten::to", x, 6, None, Typed("cpu", "Device"), None, False, False, None)
    compare("aten::to", x, 7, None, Typed("cpu", "Device"), None, False, False, None)
    compare("aten::type_as", x, ramp(1))
    compare("aten::type_as", x, ramp(1, dtype="int64"))
    z = (ramp(2, 3) + 1j).astype(np.complex64)
    for name in ("real", "imag", "view_as_real"):
        compare(f"aten::{name}", z)
        compare(f"aten::{name}", z.T)
    compare("aten::view_as_complex", ramp(3, 4, 2))
    compare("aten::view_as_complex", ramp(4, 3, 2).transpose(1, 0, 2))


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


def test_joining() -> None:
    x, y = ramp(2, 3), ramp(2, 3) + 10
    for dim in (0, 1, -1):
        for name in ("cat", "concat", "stack"):
            compare(f"aten::{name}", [x, y, x], dim)
            compare(f"aten::{name}", [x.T, y.T], dim)
    compare("aten::stack", [x, y], 2)
    compare("aten::cat", [x, ramp(2, 3, dtype="int64")], 0)
    compare("aten::cat", [x, ramp(1, 3, dtype="float64"), ramp(2, 3, dtype="bool")], 0)
    compare("aten::cat", [np.zeros(0, np.float32), x], 1)
    compare("aten::cat", [x], 0)
    for image in IMAGES.values():
        compare("aten::cat", [image, image], 1)
    compare("aten::cat", [IMAGES["plain"], IMAGES["channels last"]], 1)
    compare("aten::cat", [IMAGES["channels last"], IMAGES["plain"]], 1)
    for name in ("hstack", "vstack", "dstack", "column_stack"):
        compare(f"aten::{name}", [x, y])
        compare(f"aten::{name}", [ramp(3), ramp(3)])
    compare("aten::broadcast_tensors", [ramp(3, 1), ramp(1, 4)])
    compare("aten::meshgrid", [ramp(3), ramp(2)])
    compare("aten::meshgrid", [ramp(3), ramp(2), ramp(4)], "xy")
    compare("aten::meshgrid", [ramp(3), ramp(2)], "ij")


def test_repeating_and_reordering() -> None:
    x = ramp(2, 3)
    for repeats in ([2, 1], [1, 2], [2, 2, 3], [0, 2], [1, 1]):
        compare("aten::repeat", x, repeats)
        compare("aten::tile", x.T, repeats)
    compare("aten::tile", x, [2])
    compare("aten::repeat_interleave", x, 2, None, None)
    compare("aten::repeat_interleave", x, 2, 1, None)
    compare("aten::repeat_interleave", x, np.array([1, 2]), 0, None)
    compare("aten::repeat_interleave", np.array([2, 0, 3]), None)
    for dims in ([0], [1], [0, 1]):
        compare("aten::flip", x, dims)
        compare("aten::flip", x.T, dims)
    compare("aten::fliplr", x)
    compare("aten::flipud", x)
    for shifts, dims in (([1], [0]), ([1, -1], [0, 1]), ([2], Typed([], "int[]"))):
        compare("aten::roll", x, shifts, dims)
    for k in (0, 1, 2, 3, -1):
        compare("aten::rot90", x, k, [0, 1], strides=False)
    for diagonal in (-1, 0, 1):
        for name in ("tril", "triu"):
            compare(f"aten::{name}", ramp(3, 4), diagonal)
            compare(f"aten::{name}", ramp(2, 4, 3).transpose(0, 2, 1), diagonal, strides=False)
            compare(f"aten::{name}_", ramp(3, 4), diagonal)
        compare("aten::diag", ramp(3, 3), diagonal)
        compare("aten::diag", ramp(3), diagonal)
    compare("aten::pixel_shuffle", ramp(2, 8, 3, 2), 2)
    compare("aten::pixel_unshuffle", ramp(2, 2, 4, 6), 2)
    compare("aten::channel_shuffle", ramp(2, 6, 2, 2), 3)


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
    program = """
graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::clone(%x, %none)
  %row : Tensor = aten::select(%y, %zero, %one)
  %part : Tensor = aten::slice(%y, %one, %zero, %two, %one)
  %a : Tensor = aten::add_(%row, %two, %one)
  %b : Tensor = aten::mul_(%part, %two)
  %t : Tensor = aten::transpose(%part, %zero, %one)
  %sizes : int[] = prim::Constant[value=[6]]()
  %flat : Tensor = aten::reshape(%t, %sizes)
  %c : Tensor = aten::add_(%flat, %two, %one)
  %all : Tensor[] = prim::ListConstruct(%x, %y, %row, %part, %t, %flat)
  return (%all)
"""
    run_both(program, [ramp(3, 4)])


def test_questions_about_tensors() -> None:
    for x in (*SOURCES.values(), *IMAGES.values(), np.array(2.5, np.float32), ramp(0, 3)):
        for name in ("size", "dim", "numel", "is_floating_point", "is_complex", "element_size", "storage_offset"):
            compare(f"aten::{name}", x)
        if x.size:
            compare("aten::stride", x)
        compare("aten::is_contiguous", x)
        for name in ("dtype", "device", "is_cuda", "requires_grad", "layout", "is_sparse"):
            compare(f"prim::{name}", x)
        if x.ndim:
            compare("aten::size", x, -1)
            compare("aten::len", x)
    for value in (np.array(2.5, np.float32), np.array([3]), np.array([[True]]), np.array(-0.0)):
        for name in ("item", "Int", "Float", "Bool", "is_nonzero"):
            compare(f"aten::{name}", value)
    compare("aten::item", ramp(2))
    for a, b in ((ramp(2), ramp(2, dtype="int64")), (ramp(2), 2.5), (ramp(2, dtype="int32"), 2.5)):
        compare("aten::result_type", a, b)
    types = ("bool", "uint8", "int64", "float32", "float64", "complex64", "complex128")
    for a, b in product(types, types):
        for x, y in product((np.ones((), a), np.ones(2, a)), (np.ones((), b), np.ones(2, b))):
            compare("aten::result_type", x, y)
    compare("aten::promote_types", 6, 4)
    compare("aten::can_cast", 6, 4)
    compare("aten::can_cast", 4, 6)
