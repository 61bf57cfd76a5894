# ruff: noqa: E501 - a row is one line
"""Tensors made from nothing, or like another one; random numbers."""

from __future__ import annotations

from irc.ops import tags
from irc.ops.record import Effects, Family, each

ROWS = """
    aten::zeros(int[] size, {options}) -> Tensor | out=dtype
    aten::ones(int[] size, {options}) -> Tensor | out=dtype
    aten::empty.memory_format(int[] size, {like}) -> Tensor
    aten::full(int[] size, Scalar fill_value, {options}) -> Tensor | out=dtype
    aten::arange(Scalar end, {options}) -> Tensor | out=dtype
    aten::arange.start(Scalar start, Scalar end, {options}) -> Tensor | out=dtype
    aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, {options}) -> Tensor | out=dtype
    aten::linspace(Scalar start, Scalar end, int steps, {options}) -> Tensor | out=dtype
    aten::linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, {options}) -> Tensor
    aten::linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, {options}) -> Tensor
    aten::linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, {options}) -> Tensor
    aten::logspace(Scalar start, Scalar end, int steps, float base=10., {options}) -> Tensor | out=dtype
    aten::logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., {options}) -> Tensor
    aten::logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., {options}) -> Tensor
    aten::logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., {options}) -> Tensor
    aten::eye(int n, {options}) -> Tensor | out=dtype
    aten::eye.m(int n, int m, {options}) -> Tensor | out=dtype
    aten::zeros_like(Tensor self, {like}) -> Tensor
    aten::ones_like(Tensor self, {like}) -> Tensor
    aten::empty_like(Tensor self, {like}) -> Tensor
    aten::full_like(Tensor self, Scalar fill_value, {like}) -> Tensor
    aten::new_zeros(Tensor self, int[] size, {options}) -> Tensor
    aten::new_ones(Tensor self, int[] size, {options}) -> Tensor
    aten::new_empty(Tensor self, int[] size, {options}) -> Tensor
    aten::new_full(Tensor self, int[] size, Scalar fill_value, {options}) -> Tensor
    aten::rand(int[] size, {options}) -> Tensor | out=dtype
    aten::randn(int[] size, {options}) -> Tensor | out=dtype
    aten::randint(int high, int[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor | out=dtype
    aten::randint.low(int low, int high, int[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor | out=dtype
    aten::randperm(int n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor | out=dtype
    aten::rand_like(Tensor self, {like}) -> Tensor
    aten::randn_like(Tensor self, {like}) -> Tensor
    aten::randint_like(Tensor self, int high, {like}) -> Tensor
    aten::randint_like.Tensor(Tensor self, Tensor high, {like}) -> Tensor
    aten::randint_like.low_dtype(Tensor self, int low, int high, {like}) -> Tensor
    aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor
    aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor
    aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor
    aten::normal.float_float(float mean, float std, int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
    aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor | takes=buif
    aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor
    aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor
    aten::multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor | takes=f
    aten::scalar_tensor(Scalar s, {options}) -> Tensor
    aten::tensor(t[] data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor | out=none
    aten::tensor.bool(bool t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor
    aten::tensor.float(float t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor
    aten::tensor.int(int t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor
    aten::as_tensor(Tensor(a) data, *, ScalarType? dtype=None, Device? device=None) -> Tensor(b|a) | out=none
    aten::as_tensor.bool(bool t, *, ScalarType? dtype=None, Device? device=None) -> Tensor
    aten::as_tensor.float(float t, *, ScalarType? dtype=None, Device? device=None) -> Tensor
    aten::as_tensor.int(int t, *, ScalarType? dtype=None, Device? device=None) -> Tensor
    aten::as_tensor.list(t[] data, *, ScalarType? dtype=None, Device? device=None) -> Tensor
    aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor
    aten::normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!) | takes=fc
    aten::uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) -> Tensor(a!) | takes=fc
    aten::bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)
    aten::bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)
    aten::random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)
    aten::random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)
    aten::random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)
    aten::exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!) | takes=f
    aten::resize_(Tensor(a!) self, int[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)
    aten::resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)
    aten::tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
    aten::triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
    aten::empty_strided(int[] size, int[] stride, {options}) -> Tensor
    aten::poisson(Tensor self, Generator? generator=None) -> Tensor | takes=f
    """

FAMILY = Family("aten", tags.statements(ROWS))
FAMILY.add(
    each(
        "aten::rand aten::randn aten::randint aten::randperm aten::rand_like aten::randn_like aten::randint_like "
        "aten::normal aten::bernoulli aten::multinomial aten::poisson aten::normal_ aten::uniform_ aten::bernoulli_ "
        "aten::random_ aten::exponential_",
        effects=Effects.RANDOM,
    )
)
