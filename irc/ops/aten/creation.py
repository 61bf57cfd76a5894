# ruff: noqa: E501 - a row is one line
"""Tensors made from nothing, or like another one; random numbers."""

from __future__ import annotations

from typing import Any

from irc.ir import DType, TensorType, Type, types
from irc.ops.aten.call import NUMBERS, Call, TorchFamily, element_type, like_first, like_first_if_float
from irc.ops.record import Change, Effects
from irc.ops.shape_rules import range_length

ROWS = """
    aten::{zeros ones rand randn}(int[] size, {options}) -> Tensor | out=dtype layout=contiguous
    aten::empty.memory_format(int[] size, {like}) -> Tensor | layout=contiguous
    aten::full(int[] size, Scalar fill_value, {options}) -> Tensor | out=dtype layout=contiguous
    aten::arange(Scalar end, {options}) -> Tensor | out=dtype layout=contiguous
    aten::arange.start(Scalar start, Scalar end, {options}) -> Tensor | out=dtype
    aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, {options}) -> Tensor | out=dtype
    aten::linspace(Scalar start, Scalar end, int steps, {options}) -> Tensor | out=dtype layout=contiguous
    aten::linspace.{Scalar Tensor}_Tensor({} start, Tensor end, int steps, {options}) -> Tensor
    aten::linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, {options}) -> Tensor
    aten::logspace(Scalar start, Scalar end, int steps, float base=10., {options}) -> Tensor | out=dtype
    aten::logspace.{Scalar Tensor}_Tensor({} start, Tensor end, int steps, float base=10., {options}) -> Tensor
    aten::logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., {options}) -> Tensor
    aten::eye(int n, {options}) -> Tensor | out=dtype layout=contiguous
    aten::eye.m(int n, int m, {options}) -> Tensor | out=dtype
    aten::{zeros_like ones_like empty_like rand_like randn_like}(Tensor self, {like}) -> Tensor | layout=like-first
    aten::full_like(Tensor self, Scalar fill_value, {like}) -> Tensor | layout=like-first
    aten::{new_zeros new_ones}(Tensor self, int[] size, {options}) -> Tensor | layout=contiguous
    aten::new_empty(Tensor self, int[] size, {options}) -> Tensor
    aten::new_full(Tensor self, int[] size, Scalar fill_value, {options}) -> Tensor | layout=contiguous
    aten::randint(int high, int[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor | out=dtype layout=contiguous
    aten::randint.low(int low, int high, int[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor | out=dtype
    aten::randperm(int n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor | out=dtype layout=contiguous
    aten::randint_like(Tensor self, int high, {like}) -> Tensor
    aten::randint_like.Tensor(Tensor self, Tensor high, {like}) -> Tensor
    aten::randint_like.low_dtype(Tensor self, int low, int high, {like}) -> Tensor
    aten::normal.{Tensor float}_Tensor({} mean, Tensor std, *, Generator? generator=None) -> Tensor
    aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor
    aten::normal.float_float(float mean, float std, int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
    aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor | takes=buif
    aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor
    aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor
    aten::multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor | takes=f
    aten::scalar_tensor(Scalar s, {options}) -> Tensor | layout=contiguous
    aten::tensor(t[] data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor | out=none layout=contiguous
    aten::tensor.{bool float int}({} t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor
    aten::as_tensor(Tensor(a) data, *, ScalarType? dtype=None, Device? device=None) -> Tensor(b|a) | out=none
    aten::as_tensor.{bool float int}({} t, *, ScalarType? dtype=None, Device? device=None) -> Tensor
    aten::as_tensor.list(t[] data, *, ScalarType? dtype=None, Device? device=None) -> Tensor
    aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor | layout=like-first
    aten::normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!) | takes=fc
    aten::uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) -> Tensor(a!) | takes=fc
    aten::bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)
    aten::bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)
    aten::random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)
    aten::random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)
    aten::random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)
    aten::exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!) | takes=f
    aten::resize_(Tensor(a!) self, int[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!) | layout=seen
    aten::resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!) | layout=seen
    aten::{tril_indices triu_indices}(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor | layout=contiguous
    aten::empty_strided(int[] size, int[] stride, {options}) -> Tensor | layout=gaps
    aten::poisson(Tensor self, Generator? generator=None) -> Tensor | takes=f
    """

FAMILY = TorchFamily(ROWS)
FAMILY.each("resize_ resize_as_", changes=Change.MEMORY)
FAMILY.each(
    "rand randn randint randperm rand_like randn_like randint_like "
    "normal bernoulli multinomial poisson normal_ uniform_ bernoulli_ "
    "random_ exponential_",
    effects=Effects.RANDOM,
)
FAMILY.each("clone", value_operands=())
FAMILY.shape("clone")(like_first)
FAMILY.shape("bernoulli", "poisson")(like_first_if_float)


@FAMILY.shape(
    *"zeros ones empty full rand randn new_zeros new_ones new_empty new_full".split(),
    *"zeros_like ones_like empty_like full_like rand_like randn_like".split(),
)
def filled(c: Call) -> Type:
    """The result type of given sizes, or those of the first operand, whose element type counts too."""
    sizes, given, fill = c.dims("size"), c.arg("dtype"), c.type("fill_value")
    shape = c.tensor("self").shape if c.schema.name.endswith("_like") else None if sizes is None else tuple(sizes)
    if given is not None:
        return TensorType(element_type(given), shape)
    if c.has("self"):
        return TensorType(c.tensor("self").dtype, shape)
    return TensorType(DType.FLOAT if fill is None else NUMBERS.get(fill), shape)


@FAMILY.shape("arange")
def arange(c: Call) -> Type:
    kinds = {type for type in map(c.type, ("start", "end", "step")) if type is not None}
    given = c.arg("dtype")
    dtype = element_type(given)
    if given is None and kinds <= {types.INT, types.FLOAT}:
        dtype = DType.INT64 if kinds == {types.INT} else DType.FLOAT
    start, end, step = c.number("start", 0), c.number("end"), c.number("step", 1)
    if start is None or end is None or not step:
        return TensorType(dtype, (None,))
    return TensorType(dtype, (range_length(start, end, step),))


@FAMILY.shape("linspace", "logspace")
def evenly(c: Call) -> Type:
    given = c.arg("dtype")
    dtype = DType.FLOAT if given is None and _is_real(c) else element_type(given)
    return TensorType(dtype, (c.number("steps"),))


def _is_real(c: Call) -> bool:
    return all(c.type(i) in (types.INT, types.FLOAT) for i in range(2))


@FAMILY.shape("eye", "randint", "randperm")
def sized(c: Call) -> Type:
    given: Any = c.arg("dtype")
    if c.schema.name == "aten::eye":
        n = c.arg("n")
        m = c.arg("m", n)
        sizes: list[Any] | None = [n, m]
    else:
        sizes = [c.arg("n")] if c.schema.name == "aten::randperm" else c.dims("size")
    default = {"aten::eye": DType.FLOAT, "aten::randperm": DType.INT64}.get(c.schema.name)
    shape = None if sizes is None else tuple(n if isinstance(n, int | str) else None for n in sizes)
    return TensorType(default if given is None else element_type(given), shape)
