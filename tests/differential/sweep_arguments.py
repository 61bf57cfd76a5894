"""Arguments for every row of an operator table, made from its schema: all element types, layouts and awkward values.

A seed and a row give the same arguments always. Tensors are 0-d, empty or small, of any element type that rows may
take, contiguous, permuted, strided, expanded or channels-last, and hold small numbers, numbers between 0 and 1, or
signed zeros, infinities, NaN, tiny and huge numbers. Where arguments must fit together, `FITTING` makes them.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch

from irc.ir import types
from irc.ir.schema import Argument, Schema
from irc.ir.types import DictType, ListType, OptionalType, TensorType, TupleType, Type, TypeVar
from tests.differential.recipes import recipes

_RECIPES = recipes()

DTYPES = {
    torch.float32: 40,
    torch.float64: 12,
    torch.float16: 8,
    torch.bfloat16: 8,
    torch.int64: 9,
    torch.int32: 4,
    torch.int16: 2,
    torch.int8: 2,
    torch.uint8: 4,
    torch.bool: 6,
    torch.complex64: 3,
    torch.complex128: 2,
}
"""Element types, and how often each is chosen."""

SHAPES = (
    *((), (0,), (1,), (3,), (4,), (2, 3), (3, 3), (1, 1), (3, 1), (2, 0, 3), (2, 3, 4), (3, 2, 2), (1, 4, 4)),
    *((2, 3, 3), (2, 2, 3, 3), (1, 2, 4, 4), (2, 4, 1, 3), (1, 2, 3, 4, 4), (0, 3), (70,)),
)

EDGES = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 7.0, -7.25, 0.1, 100.0, -100.0, 1e-3, 1e-30, 1e30, -1e30),
    *(3e38, 1e-42, math.nan, math.inf, -math.inf, 20.0, -20.0, 0.9999999, 2.0, -3.0, 60000.0),
)
INTEGER_EDGES = (0, 1, -1, 2, 3, -3, 7, 100, -100, 127, -128, 255, 2**31 - 1, -(2**31), 2**62, -(2**63))

Maker = Callable[[random.Random], list[Any]]


def arguments(row: Schema, rng: random.Random) -> list[Any]:
    """Values for all arguments of ``row``, which may or may not go together."""
    name = row.name.removeprefix("aten::")
    stem = name.removesuffix("_")
    overloaded = f"{name}.{row.overload}"
    recipe = _RECIPES.get(f"{row.name}.{row.overload}".rstrip("."))
    made = FITTING.get(overloaded) or FITTING.get(name) or FITTING.get(stem)
    if not any(_holds_tensors(a.type) for a in row.arguments):
        made = None
    chosen = _Arguments(rng, any(_holds_tensors(a.type) for a in row.arguments))
    if made is not None and rng.random() < 0.9:
        return _in_order(name, chosen.varied(row, made(rng)[: len(row.arguments)]))
    if recipe is not None and rng.random() < 0.8:
        return chosen.varied(row, recipe())
    return [chosen.argument(a) for a in row.arguments]


def _in_order(name: str, given: list[Any]) -> list[Any]:
    """``given``, whose boundaries are sorted: what is found among others is undefined."""
    at = {"searchsorted": 0, "bucketize": 1}.get(name)
    if at is not None and not given[at].is_complex():
        given[at] = torch.sort(given[at])[0]
    return given


class _Arguments:
    """The arguments of one call, whose tensors are mostly of one element type and of shapes that broadcast."""

    def __init__(self, rng: random.Random, has_tensors: bool) -> None:
        self.rng = rng
        self.shape = rng.choice(SHAPES)
        self.dtype = rng.choices(list(DTYPES), list(DTYPES.values()))[0]
        self.values = rng.choices((_plain, _whole, _unit, _edges), (45, 15, 10, 30))[0]
        self.is_first = True
        self.has_tensors = has_tensors

    def varied(self, row: Schema, made: Sequence[Any]) -> list[Any]:
        """``made``, float tensors filled anew, of another element type and layout; rarely another argument instead."""
        found = [self._varied(v) for v in made]
        if found and self.rng.random() < 0.15:
            at = self.rng.randrange(len(found))
            if not _holds_tensors(row.arguments[at].type):
                found[at] = self.argument(row.arguments[at])
        return found

    def _varied(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._varied(v) for v in value]
        if not isinstance(value, torch.Tensor):
            return value
        if not value.is_floating_point():
            return _laid_out(value, self.rng)
        dtype = self.dtype if self.rng.random() < 0.95 else self._dtype()
        return _laid_out(self.values(tuple(value.shape), dtype, self.rng), self.rng)

    def _dtype(self) -> torch.dtype:
        return self.rng.choices(list(DTYPES), list(DTYPES.values()))[0]

    def argument(self, argument: Argument) -> Any:
        """A value for one argument: often its default."""
        if argument.has_default and self.rng.random() < 0.45:
            return _default(argument)
        return self.value(argument.type, argument.name)

    def value(self, type: Type, name: str) -> Any:
        rng = self.rng
        if isinstance(type, OptionalType):
            return None if rng.random() < 0.4 else self.value(type.elem, name)
        if isinstance(type, TensorType):
            return self.tensor(name)
        if isinstance(type, ListType):
            return self._list(type.elem, name)
        if type == types.INT:
            return self._int(name)
        if isinstance(type, DictType | TupleType):
            raise TypeError(f"there are no arguments of type {type}")
        if type == types.SCALAR and not self.has_tensors:  # of numbers alone, PyTorch fails for bools
            return rng.choice((0, 1, 2, -1, 3, 0.5, -1.5, 2.7, 0.0, -0.0, 1e-3, 100, math.inf, math.nan, -2))
        if type == types.SCALAR:
            return rng.choice((0, 1, 2, -1, 3, 0.5, -1.5, 2.7, 0.0, -0.0, 1e-3, 100, 1, 2, True, math.inf, -2, 300))
        if type == types.FLOAT:
            return rng.choice((0.0, 0.5, 1.0, 2.0, -1.0, 0.1, 1e-5, 3.7, -0.0, math.inf, math.nan))
        if type == types.BOOL and name in ("pin_memory", "requires_grad"):
            return False
        if type == types.BOOL:
            return rng.random() < 0.5
        if type == types.STR:
            return rng.choice(_STRINGS.get(name, _TEXTS))
        if type == types.DEVICE:
            return torch.device("cpu")
        if type == types.COMPLEX:
            return complex(rng.choice((0, 1, -2.5)), rng.choice((0, 1, -0.5)))
        if isinstance(type, TypeVar):
            return rng.choice((1, 2, 3))
        return None

    def _list(self, elem: Type, name: str) -> list[Any]:
        rng = self.rng
        if elem == types.INT:
            if name in _LISTS:
                return list(rng.choice(_LISTS[name]))
            if name in ("dim", "dims", "dims_self", "dims_other", "axes", "source", "destination"):
                return [self._dim() for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3)))]
            return [rng.randint(-1, 4) for _ in range(rng.choice((0, 1, 1, 2, 2, 3)))]
        count = rng.choice((0, 1, 1, 2, 2, 3))
        return [self.value(elem, name) for _ in range(count)]

    def _dim(self) -> int:
        rank = max(len(self.shape), 1)
        return self.rng.randrange(-rank, rank) if self.rng.random() < 0.93 else self.rng.choice((rank, -rank - 1))

    def _int(self, name: str) -> Any:
        rng = self.rng
        if name in _DIMS:
            return self._dim()
        if name in ("dtype", "out_dtype"):
            return self._dtype()
        return rng.choice(_INTS.get(name, (0, 1, 2, 3, -1, -2, 4, 5)))

    def tensor(self, name: str) -> torch.Tensor:
        """One whose shape and element type are, mostly, those of the others; the first one's are the call's own."""
        rng = self.rng
        shape, dtype = self.shape, self.dtype
        if not self.is_first:
            chance = rng.random()
            if chance > 0.9:
                shape = rng.choice(SHAPES)
            elif chance > 0.55:
                shape = tuple(n if rng.random() < 0.7 else 1 for n in shape[rng.randrange(len(shape) + 1) :])
            if rng.random() < 0.2:
                dtype = self._dtype()
        self.is_first = False
        if name in ("mask", "condition", "attn_mask"):
            return _laid_out(
                torch.tensor([rng.random() < 0.5 for _ in range(math.prod(shape))]).bool().reshape(shape), rng
            )
        if name in ("index", "indices", "target") and rng.random() < 0.9:
            return _laid_out(_numbers(shape, torch.int64, [0, 0, 0, 1, 1, 2, -1], rng), rng)
        return _laid_out(self.values(shape, dtype, rng), rng)


def _holds_tensors(type: Type) -> bool:
    if isinstance(type, OptionalType | ListType):
        return _holds_tensors(type.elem)
    return isinstance(type, TensorType | DictType | TupleType)


def _default(argument: Argument) -> Any:
    """The default of an argument, as PyTorch's overloads take it."""
    value = argument.default
    if isinstance(argument.type, ListType) and not isinstance(value, list):
        return [value] * (argument.size or 1)
    if argument.name == "memory_format" and value is not None:
        return torch.contiguous_format
    return torch.int64 if argument.name == "dtype" and value is not None else value


# -- elements and layouts --------------------------------------------------------


def _numbers(shape: Sequence[int], dtype: torch.dtype, pool: Sequence[Any], rng: random.Random) -> torch.Tensor:
    return torch.tensor([rng.choice(pool) for _ in range(math.prod(shape))], dtype=dtype).reshape(tuple(shape))


def _filled(shape: Sequence[int], dtype: torch.dtype, draw: Callable[[], float], rng: random.Random) -> torch.Tensor:
    count = math.prod(shape)
    if dtype.is_complex:
        found: torch.Tensor = torch.tensor([complex(draw(), draw()) for _ in range(count)], dtype=torch.complex128)
    else:
        found = torch.tensor([draw() for _ in range(count)], dtype=torch.float64)
    return found.to(dtype).reshape(tuple(shape))


def _plain(shape: Sequence[int], dtype: torch.dtype, rng: random.Random) -> torch.Tensor:
    low = 0 if dtype in (torch.bool, torch.uint8) else -3
    if not dtype.is_floating_point and not dtype.is_complex:
        return _filled(shape, dtype, lambda: rng.randint(low, 4 if dtype != torch.bool else 1), rng)
    return _filled(shape, dtype, lambda: rng.uniform(-3, 3), rng)


def _whole(shape: Sequence[int], dtype: torch.dtype, rng: random.Random) -> torch.Tensor:
    return _filled(shape, dtype, lambda: rng.randint(0 if dtype in (torch.bool, torch.uint8) else -3, 4), rng)


def _unit(shape: Sequence[int], dtype: torch.dtype, rng: random.Random) -> torch.Tensor:
    return _filled(shape, dtype, lambda: rng.uniform(0, 1), rng)


def _edges(shape: Sequence[int], dtype: torch.dtype, rng: random.Random) -> torch.Tensor:
    if dtype.is_floating_point or dtype.is_complex:
        return _filled(shape, dtype, lambda: rng.choice(EDGES), rng)
    if dtype == torch.bool:
        return _plain(shape, dtype, rng)
    limits = torch.iinfo(dtype)
    return _numbers(shape, dtype, [v for v in INTEGER_EDGES if limits.min <= v <= limits.max], rng)


def _laid_out(x: torch.Tensor, rng: random.Random) -> torch.Tensor:
    """``x`` with its elements in another order in memory, or with gaps, or some of them in one place."""
    chance = rng.random()
    if chance < 0.6 or not x.dim():
        return x
    if chance < 0.75:
        order = rng.sample(range(x.dim()), x.dim())
        return x.permute(order).contiguous().permute([order.index(i) for i in range(x.dim())])
    if chance < 0.85:
        axis = rng.randrange(x.dim())
        wide = torch.repeat_interleave(x, 2, axis)
        return _stepped(wide, axis)
    if chance < 0.92 and x.dim() == 4:
        return x.contiguous(memory_format=torch.channels_last)
    if chance < 0.97 and x.numel():
        axis = rng.randrange(x.dim())
        return x.narrow(axis, 0, 1).expand(x.shape)
    return torch.cat([x.reshape(-1)[:1], x.reshape(-1)])[1:].reshape(x.shape) if x.numel() else x


def _stepped(wide: torch.Tensor, axis: int) -> torch.Tensor:
    return wide[(slice(None),) * axis + (slice(1, None, 2),)] if wide.shape[axis] else wide


# -- numbers and words by the names of arguments ----------------------------------

_DIMS = frozenset("dim dim0 dim1 dim2 axis start_dim end_dim source destination dimension".split())
_INTS: dict[str, tuple[Any, ...]] = {
    "memory_format": (torch.contiguous_format, torch.preserve_format, torch.channels_last),
    "layout": (torch.strided,),
    "reduction": (0, 1, 2),
    "groups": (1, 1, 2),
    "upscale_factor": (1, 2),
    "downscale_factor": (1, 2, 3),
    "steps": (0, 1, 2, 5, 17, -1),
    "chunks": (1, 2, 3, 5, 0),
    "split_size": (1, 2, 3, 0),
    "sections": (1, 2, 3),
    "step": (1, 1, 2, 3, 0, -1),
    "window_length": (0, 1, 2, 5, 8, -1),
    "bins": (1, 3, 10, 0),
    "num_classes": (-1, 5, 3, 0),
    "ignore_index": (-100, 0, 1),
    "n": (0, 1, 2, 3, 5, -1),
    "m": (0, 1, 3, -1),
    "k": (0, 1, 2, 3),
    "high": (1, 5, 9),
    "low": (0, -3),
    "decimals": (0, 1, 2, -1, 3),
    "minlength": (0, 3, 9),
    "r": (0, 1, 2, 3),
    "repeats": (0, 1, 2),
    "stacklevel": (2,),
    "width": (0, 3, 8),  # of negative ones PyTorch never ends
    **dict.fromkeys(("type1", "type2", "from_"), (0, 1, 3, 4, 5, 6, 7, 9, 11)),
    "i": (0, 1, 65, 97, 127),
    "dilation": (1, 2),
}
# PyTorch takes others byte by byte.
_TEXTS = ("a", "b", "", "Ab c", "1", "12", "x1y1", "abab", " a ", "ABC", "3.5", "-7", "x\ty", "a\nb")
_STRINGS = {
    "equation": ("i->i", "ij->ij", "ij->ji", "ij,jk->ik", "i,j->ij", "ii->i", "...", "...i->", "ij->j", "...ij->...ji"),
    "indexing": ("ij", "xy", "yx"),
    "mode": ("constant", "reflect", "replicate", "circular"),
    "rounding_mode": ("floor", "trunc"),
    "approximate": ("none", "tanh"),
    "padding": ("valid", "same"),
    "reduce": ("sum", "mean", "amax", "amin", "prod", "multiply", "add"),
    "interpolation": ("linear", "nearest", "lower", "higher", "midpoint"),
    "ord": ("fro", "nuc"),
    "norm": ("backward", "forward", "ortho"),
    "side": ("left", "right"),
    "UPLO": ("L", "U"),
    "driver": ("gelsd",),
    "type": ("cpu",),
}
_LISTS: dict[str, tuple[tuple[int, ...], ...]] = {
    "size": ((2, 3), (3, 2), (6,), (1, 2, 3), (-1,), (3, 3), (1, 3), (), (4, 4), (2, 2), (1, 1), (0,), (2, 0), (-1, 2)),
    "shape": ((2, 3), (3, 2), (6,), (-1,), (1, -1), (), (4, -1), (0,), (9,), (2, -1, 3), (12, 2)),
    "sizes": ((1, 2), (2, 1), (1, 3), (3,), (-1,), (2, -1)),
    "stride": ((1,), (3, 1), (1, 1), (2,), (1, 2), (0, 1), ()),
    "kernel_size": ((1,), (2,), (1, 1), (2, 2), (1, 1, 1), (3, 2)),
    "output_size": ((2,), (2, 2), (1,), (4, 4), (2, 2, 2), (1, 1, 1), (4,), (3, 5), (0,)),
    "dilation": ((1,), (1, 1), (1, 1, 1), (2,)),
    "padding": ((0,), (0, 0), (1, 1), (1,), (1, 0, 2, 1), (-1, 1), (1, -1, 0, 2), (-2, 3)),
    "pad": ((0, 0), (0, 0, 0, 0), (1, 0), (1, 1, 1, 1), (-1, 2), (2, -1, -1, 1), (-2, 1)),
    "normalized_shape": ((3,), (4,), (2, 3), (4, 4)),
    "split_sizes": ((1, 1), (2,), (3,), (1, 2), (1, 1, 1), (0, 3)),
    "split_size": ((1, 1), (2,), (3,), (1, 2), (1, 1, 1)),
    "repeats": ((1,), (1, 1), (2, 1), (1, 1, 1), (0, 2), (2, 2, 1)),
    "shifts": ((0,), (1,), (-1,), (1, 2), (5,)),
    "indices": ((1,), (1, 2), (0, 2), (-1,)),
    "s": ((2,), (3, 2), (4, 4), (1, 3)),
}


# -- arguments that fit together --------------------------------------------------


def _rand(*shape: int) -> torch.Tensor:
    return torch.rand(shape)


def _indices(shape: Sequence[int], below: int, rng: random.Random, least: int = 0) -> torch.Tensor:
    return _numbers(shape, torch.int64, range(least, max(below, least + 1)), rng)


def _pick(rng: random.Random, *values: Any) -> Any:
    return rng.choice(values)


def _spatial(rng: random.Random, n: int, low: int = 2, high: int = 5) -> list[int]:
    return [rng.randint(low, high) for _ in range(n)]


def _conv(n: int, transposed: bool = False, mode: bool = False) -> Maker:
    def make(rng: random.Random) -> list[Any]:
        groups = _pick(rng, 1, 1, 2)
        cin, cout = 2 * groups, groups * _pick(rng, 1, 2)
        batch = [] if rng.random() < 0.2 else [_pick(rng, 1, 2)]
        kernel = _spatial(rng, n, 1, 3)
        weight = _rand(cin, cout // groups, *kernel) if transposed else _rand(cout, cin // groups, *kernel)
        bias = _rand(cout) if rng.random() < 0.6 else None
        strides, dilations = _spatial(rng, n, 1, 2), _spatial(rng, n, 1, 2)
        pads: Any = _pick(rng, "same", "valid") if mode else _spatial(rng, n, 0, 1)
        x = _rand(*batch, cin, *_spatial(rng, n, 3, 6))
        if transposed:
            return [x, weight, bias, strides, pads, [0] * n, groups, dilations]
        return [x, weight, bias, [1] * n if pads == "same" else strides, pads, dilations, groups]

    return make


def _convolution(rng: random.Random) -> list[Any]:
    n, transposed = _pick(rng, 1, 2, 3), rng.random() < 0.4
    x, weight, bias, strides, pads, *rest = _conv(n, transposed)(rng)
    groups, dilations = (rest[1], rest[2]) if transposed else (rest[1], rest[0])
    return [x, weight, bias, strides, pads, dilations, transposed, [0] * n, groups, False, False, False, False]


def _pool(n: int, average: bool) -> Maker:
    def make(rng: random.Random) -> list[Any]:
        x = _rand(*_spatial(rng, _pick(rng, 1, 2), 1, 2), *_spatial(rng, n, 2, 6))
        kernel = _spatial(rng, n, 1, 3)
        start = [x, kernel, _pick(rng, [], kernel, _spatial(rng, n, 1, 3)), [_pick(rng, 0, k // 2) for k in kernel]]
        ceil = rng.random() < 0.4
        if average:
            return [*start, ceil, rng.random() < 0.5, _pick(rng, None, None, 2, -3)]
        return [*start, _spatial(rng, n, 1, 2), ceil]

    return make


def _adaptive(n: int) -> Maker:
    return lambda rng: [_rand(*_spatial(rng, _pick(rng, 1, 2), 1, 2), *_spatial(rng, n, 1, 6)), _spatial(rng, n, 1, 5)]


def _normalised(n: int) -> Maker:
    def make(rng: random.Random) -> list[Any]:
        channels = _pick(rng, 1, 2, 3)
        some = [_rand(channels) if rng.random() < 0.7 else None for _ in range(2)]
        statistics = [_rand(channels), _rand(channels)]
        x = _rand(_pick(rng, 1, 2), channels, *_spatial(rng, _pick(rng, *([0] * (n == 0)), 1, 2, 3), 1, 4))
        return [x, *some, *statistics, rng.random() < 0.5, _pick(rng, 0.1, 0.0, 1.0), _pick(rng, 1e-5, 0.1, 0.0), False]

    return make


def _layer_norm(rng: random.Random) -> list[Any]:
    shape = _spatial(rng, _pick(rng, 1, 2, 3), 1, 4)
    inner = shape[rng.randrange(len(shape)) :]
    return [_rand(*shape), inner, *(_rand(*inner) if rng.random() < 0.6 else None for _ in range(2)), 1e-5, True]


def _rms_norm(rng: random.Random) -> list[Any]:
    x, inner, weight, *_ = _layer_norm(rng)
    return [x, inner, weight, _pick(rng, None, 1e-5, 0.1)]


def _group_norm(rng: random.Random) -> list[Any]:
    groups, per = _pick(rng, 1, 2, 3), _pick(rng, 1, 2)
    x = _rand(_pick(rng, 1, 2), groups * per, *_spatial(rng, _pick(rng, 0, 1, 2), 1, 3))
    return [x, groups, *(_rand(groups * per) if rng.random() < 0.6 else None for _ in range(2)), 1e-5, False]


def _native_group_norm(rng: random.Random) -> list[Any]:
    x, groups, weight, bias, *_ = _group_norm(rng)
    return [x, weight, bias, x.shape[0], x.shape[1], math.prod(x.shape[2:]), groups, 1e-5]


def _resized(n: int, corners: bool, vec: bool) -> Maker:
    def make(rng: random.Random) -> list[Any]:
        x = _rand(_pick(rng, 1, 2), _pick(rng, 1, 3), *_spatial(rng, n, 1, 5))
        sizes = _spatial(rng, n, 1, 7)
        scales = [_pick(rng, 0.5, 1.5, 2.0, 1.0, 0.7, 3.0) for _ in range(n)]
        flag = [rng.random() < 0.5] if corners else []
        if vec:
            by_size = rng.random() < 0.5
            return [x, sizes if by_size else None, *flag, None if by_size else scales]
        if rng.random() < 0.5:
            sizes = [max(1, math.floor(s * f)) for s, f in zip(x.shape[2:], scales)]
            return [x, sizes, *flag, *scales]
        return [x, sizes, *flag, *[None] * n]

    return make


def _interpolated(rng: random.Random, size: Any, scale: Any) -> list[Any]:
    n = _pick(rng, 1, 2, 3)
    modes = {1: "nearest linear area", 2: "nearest bilinear bicubic area nearest-exact", 3: "nearest trilinear"}
    mode = _pick(rng, *modes[n].split())
    corners = _pick(rng, None, False, True) if mode in ("linear", "bilinear", "bicubic", "trilinear") else None
    by_size = rng.random() < 0.5
    x = _rand(1, 2, *_spatial(rng, n, 1, 5))
    antialias = mode in ("bilinear", "bicubic") and rng.random() < 0.3
    first, second = size(rng, n) if by_size else None, None if by_size else scale(rng, n)
    return [x, first, second, mode, corners, None if by_size else _pick(rng, None, False, True), antialias]


def _one_size(rng: random.Random, n: int) -> Any:
    return rng.randint(1, 6)


def _sizes(rng: random.Random, n: int) -> Any:
    return _spatial(rng, n, 1, 6)


def _one_scale(rng: random.Random, n: int) -> Any:
    return _pick(rng, 0.5, 2.0, 1.5)


def _scales(rng: random.Random, n: int) -> Any:
    return [_pick(rng, 0.5, 2.0, 1.5) for _ in range(n)]


def _grid(n: int) -> Maker:
    def make(rng: random.Random) -> list[Any]:
        batch = _pick(rng, 1, 2)
        grid = 3 * _rand(batch, *_spatial(rng, n, 1, 3), n) - 1.5
        x, mode = _rand(batch, 2, *_spatial(rng, n, 1, 4)), rng.randint(0, 2 if n == 2 else 1)
        return [x, grid, mode, rng.randint(0, 2), rng.random() < 0.5]

    return make


def _classes(rng: random.Random) -> list[Any]:
    count, rest = _pick(rng, 2, 3, 5), _spatial(rng, _pick(rng, 0, 0, 1, 2), 1, 3)
    batch = [] if rng.random() < 0.2 and not rest else [_pick(rng, 1, 3)]
    target = _indices([*batch, *rest], count, rng)
    weight = _rand(count) if rng.random() < 0.4 else None
    x = _rand(*batch, count, *rest)
    return [x, target, weight, rng.randint(0, 2), _pick(rng, -100, 0, 1), _pick(rng, 0.0, 0.1)]


def _margins(rng: random.Random) -> list[Any]:
    count, batch = _pick(rng, 2, 4), _pick(rng, 1, 3)
    weight = _rand(count) if rng.random() < 0.4 else None
    x, target = _rand(batch, count), _indices([batch], count, rng)
    return [x, target, _pick(rng, 1, 2), _pick(rng, 1, 0.5), weight, rng.randint(0, 2)]


def _pair(*more: Callable[[random.Random], Any]) -> Maker:
    """Two tensors of one shape, or of shapes that broadcast."""

    def make(rng: random.Random) -> list[Any]:
        shape = rng.choice(SHAPES)
        other = shape if rng.random() < 0.7 else tuple(n if rng.random() < 0.6 else 1 for n in shape)
        return [_rand(*shape), _rand(*other), *(m(rng) for m in more)]

    return make


def _signs(shape: Sequence[int], rng: random.Random) -> torch.Tensor:
    return _numbers(shape, torch.int64, (1, -1), rng)


def _embedding(rng: random.Random) -> list[Any]:
    return [_rand(5, 3), _indices(rng.choice(SHAPES[:11]), 5, rng), -1, False, False]


def _bag(rng: random.Random) -> list[Any]:
    offsets = torch.tensor(sorted([0, *(rng.randint(0, 6) for _ in range(rng.randint(0, 3)))]))
    mode, last = rng.randint(0, 2), rng.random() < 0.3
    weights = _rand(6) if mode == 0 and rng.random() < 0.4 else None
    return [_rand(5, 3), _indices([6], 5, rng), offsets, False, mode, False, weights, last, _pick(rng, None, 1, -2)]


def _recurrent(gates: int, pair: bool) -> Maker:
    def make(rng: random.Random) -> list[Any]:
        layers, both, biases, first = _pick(rng, 1, 2), rng.random() < 0.3, rng.random() < 0.7, rng.random() < 0.5
        time, batch, size, hidden, ways = _pick(rng, 1, 3), _pick(rng, 1, 2), 3, 2, 2 if both else 1
        state = [_rand(layers * ways, batch, hidden) for _ in range(2 if pair else 1)]
        params = list[torch.Tensor]()
        for layer in range(layers):
            for _ in range(ways):
                inner = size if layer == 0 else hidden * ways
                params += [_rand(gates * hidden, inner), _rand(gates * hidden, hidden)]
                params += [_rand(gates * hidden), _rand(gates * hidden)] if biases else []
        x = _rand(batch, time, size) if first else _rand(time, batch, size)
        return [x, state if pair else state[0], params, biases, layers, 0.0, False, both, first]

    return make


def _cell(gates: int, pair: bool) -> Maker:
    def make(rng: random.Random) -> list[Any]:
        hidden = 2
        state = [_rand(2, hidden) for _ in range(2 if pair else 1)]
        biases = [_rand(gates * hidden), _rand(gates * hidden)] if rng.random() < 0.6 else [None, None]
        weights = [_rand(gates * hidden, 3), _rand(gates * hidden, hidden)]
        return [_rand(2, 3), state if pair else state[0], *weights, *biases]

    return make


def _product(*ranks: int) -> Maker:
    def make(rng: random.Random) -> list[Any]:
        rows, inner, columns = (_pick(rng, 1, 2, 3, 0) if rng.random() < 0.2 else _pick(rng, 1, 2, 3) for _ in range(3))
        left, right = ranks or (_pick(rng, 1, 2, 3, 4), _pick(rng, 1, 2, 3, 4))
        batch = [_pick(rng, 1, 2) for _ in range(2)]
        a = [*batch[: max(0, left - 2)], *([rows] if left > 1 else []), inner]
        b = [*batch[: max(0, right - 2)], inner, *([columns] if right > 1 else [])]
        return [_rand(*a), _rand(*b)]

    return make


def _added(left: int, right: int) -> Maker:
    def make(rng: random.Random) -> list[Any]:
        a, b = _product(left, right)(rng)
        shape = (a @ b).shape
        shape = tuple(n if rng.random() < 0.8 else 1 for n in shape)[_pick(rng, 0, 0, 0, 1) if len(shape) > 1 else 0 :]
        return [_rand(*shape), a, b, _pick(rng, 1, 0, 2, 0.5), _pick(rng, 1, 2, -1, 0.5)]

    return make


def _addbmm(rng: random.Random) -> list[Any]:
    _, a, b, *rest = _added(3, 3)(rng)
    return [_rand(a.shape[1], b.shape[2]), a, b, *rest]


def _linear(rng: random.Random) -> list[Any]:
    outer, inner, columns = _spatial(rng, _pick(rng, 0, 1, 2), 1, 3), _pick(rng, 1, 3), _pick(rng, 1, 2)
    return [_rand(*outer, inner), _rand(columns, inner), _rand(columns) if rng.random() < 0.6 else None]


def _tensordot(rng: random.Random) -> list[Any]:
    shared = [_pick(rng, 1, 2, 3) for _ in range(_pick(rng, 0, 1, 2))]
    other = [n if rng.random() < 0.8 else 1 for n in shared]
    own = [_pick(rng, 1, 2) for _ in range(_pick(rng, 0, 1, 2))]
    theirs = [_pick(rng, 1, 2) for _ in range(_pick(rng, 0, 1, 2))]
    dims = [len(own) + i for i in range(len(shared))]
    return [_rand(*own, *shared), _rand(*other, *theirs), dims, list(range(len(other)))]


def _einsum(rng: random.Random) -> list[Any]:
    equations = (
        "ij,jk->ik ...ij,...jk->...ik bij,bjk->bik i,i-> i,j->ij ij->ji ii->i ij-> ...ij->j ...i,...j->ij "
        "ij,ij,jk->ik i...->... ij,j ab,cb"
    )
    equation = _pick(rng, *equations.split())
    sizes = {letter: _pick(rng, 1, 2, 3) for letter in "ijkabc"}
    terms = equation.split("->")[0].split(",")
    dots = [_pick(rng, 1, 2) for _ in range(_pick(rng, 0, 1, 2))]
    shapes = [[n for part in _parts(term) for n in (dots if part == "..." else [sizes[part]])] for term in terms]
    return [equation, [_rand(*shape) for shape in shapes], None]


def _parts(term: str) -> list[str]:
    head, dots, tail = term.partition("...")
    return [*head, *([dots] if dots else []), *tail]


def _attention(rng: random.Random) -> list[Any]:
    batch, heads, rows, columns, size = (_pick(rng, 1, n) for n in (2, 2, 3, 4, 4))
    causal = rng.random() < 0.3
    mask = _pick(rng, None, _rand(rows, columns), _rand(batch, heads, rows, columns) > 0.4, _rand(rows, columns) > 0.3)
    widths = ((rows, size), (columns, size), (columns, _pick(rng, size, 3)))
    operands = [_rand(batch, heads, *width) for width in widths]
    return [*operands, None if causal else mask, 0.0, causal, _pick(rng, None, 0.5), False]


def _padded(n: int) -> Maker:
    def make(rng: random.Random) -> list[Any]:
        x = _rand(*_spatial(rng, _pick(rng, 1, 2), 1, 2), *_spatial(rng, n, 1, 5))
        return [x, [rng.randint(-3, 3) for _ in range(2 * n)]]

    return make


def _pad(rng: random.Random) -> list[Any]:
    n = _pick(rng, 1, 2, 3)
    x, widths = _padded(n)(rng)
    mode = _pick(rng, "constant", "reflect", "replicate", "circular")
    return [x, widths, mode, _pick(rng, 0.0, 1.5, None) if mode == "constant" else None]


def _constant_pad(rng: random.Random) -> list[Any]:
    return [*_padded(_pick(rng, 1, 2))(rng), _pick(rng, 0, 1.5, -1)]


def _unfolded(rng: random.Random) -> list[Any]:
    x = _rand(*_pick(rng, [], [2]), 2, *_spatial(rng, 2, 3, 5))
    return [x, _spatial(rng, 2, 1, 3), _spatial(rng, 2, 1, 2), _spatial(rng, 2, 0, 1), _spatial(rng, 2, 1, 2)]


def _folded(rng: random.Random) -> list[Any]:
    x, kernel, dilation, pads, stride = _unfolded(rng)
    size = list(x.shape[-2:])
    blocks = [(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, k, d, p, t in zip(size, kernel, dilation, pads, stride)]
    columns = _rand(*x.shape[:-3], 2 * math.prod(kernel), max(0, math.prod(blocks)))
    return [columns, size, kernel, dilation, pads, stride]


def _square(*more: Callable[[random.Random], Any]) -> Maker:
    def make(rng: random.Random) -> list[Any]:
        n = _pick(rng, 0, 1, 2, 3) if rng.random() < 0.2 else _pick(rng, 1, 2, 3)
        return [_rand(*_pick(rng, [], [], [2], [0]), n, n), *(m(rng) for m in more)]

    return make


def _any_matrix(*more: Callable[[random.Random], Any]) -> Maker:
    return lambda rng: [_rand(*_pick(rng, [], [2]), *_spatial(rng, 2, 1, 4)), *(m(rng) for m in more)]


def _system(rng: random.Random) -> list[Any]:
    n, batch = _pick(rng, 1, 2, 3), _pick(rng, [], [], [2])
    b = _rand(*batch, n, _pick(rng, 1, 2)) if rng.random() < 0.7 else _rand(*batch, n)
    return [_rand(*batch, n, n), b, True]


def _triangular(rng: random.Random) -> list[Any]:
    a, b, _ = _system(rng)
    return [a, b if b.dim() >= 2 else b[:, None], rng.random() < 0.5, True, rng.random() < 0.3]


def _triangular_solve(rng: random.Random) -> list[Any]:
    a, b, upper, _, unit = _triangular(rng)
    return [b, a, upper, rng.random() < 0.3, unit]


def _lstsq(rng: random.Random) -> list[Any]:
    rows, columns = _pick(rng, 2, 3, 4), _pick(rng, 1, 2, 3)
    return [_rand(rows, columns), _rand(rows, _pick(rng, 1, 2)), None, _pick(rng, None, "gelsd", "gelsy", "gels")]


def _along(*more: Callable[[random.Random], Any], source: str = "none") -> Maker:
    """A tensor, a dimension, and an index as gather has it; then a source like the index."""

    def make(rng: random.Random) -> list[Any]:
        shape = rng.choice([s for s in SHAPES if math.prod(s) and len(s) < 4])
        dim = rng.randrange(-max(len(shape), 1), max(len(shape), 1))
        index = tuple(max(1, n - _pick(rng, 0, 0, 1)) for n in shape)
        size = shape[dim] if shape else 1
        start = [_rand(*shape), dim, _indices(index, size, rng)]
        given = [_rand(*index)] if source == "tensor" else [_pick(rng, 2, 1.5, -1)] if source == "value" else []
        return [*start, *given, *(m(rng) for m in more)]

    return make


def _slices(*more: Callable[[random.Random], Any], source: str = "none") -> Maker:
    """A tensor, a dimension and a vector of indices along it; then a source of as many slices."""

    def make(rng: random.Random) -> list[Any]:
        shape = rng.choice([s for s in SHAPES if math.prod(s) and len(s) < 4])
        axis = rng.randrange(max(len(shape), 1))
        count = _pick(rng, 1, 2, 3)
        index = _indices([count] if shape else _pick(rng, [], [1]), shape[axis] if shape else 1, rng)
        part = [count if i == axis else n for i, n in enumerate(shape)]
        given = [_rand(*part)] if source == "tensor" else [_pick(rng, 2, 1.5, -1)] if source == "value" else []
        if source == "scalar":
            given = [_rand()]
        dim = axis - len(shape) if shape and rng.random() < 0.4 else axis
        return [_rand(*shape), dim, index, *given, *(m(rng) for m in more)]

    return make


def _indexed(rng: random.Random, shape: Sequence[int]) -> list[Any]:
    found: list[Any] = []
    for n in shape[: rng.randint(1, max(len(shape), 1))]:
        chance = rng.random()
        if chance < 0.3:
            found.append(None)
        elif chance < 0.45:
            found.append(_rand(n) > 0.5)
        else:
            found.append(_indices(_pick(rng, [2], [2], [1], [3, 1], []), max(n, 1), rng, least=-n))
    return found


def _index(rng: random.Random) -> list[Any]:
    shape = rng.choice([s for s in SHAPES if s and math.prod(s)])
    return [_rand(*shape), _indexed(rng, shape)]


def _index_put(rng: random.Random) -> list[Any]:
    x, index = _index(rng)
    try:
        whole = list(x[tuple(slice(None) if i is None else i for i in index)].shape)
    except (IndexError, RuntimeError):
        whole = []
    given = [] if rng.random() < 0.3 else whole
    return [x, index, _rand(*given), rng.random() < 0.3]


def _put(rng: random.Random) -> list[Any]:
    shape = rng.choice([s for s in SHAPES if math.prod(s)])
    total = math.prod(shape)
    index = torch.tensor(rng.sample(range(total), min(total, _pick(rng, 1, 2, 3))))  # of equal ones any may win
    return [_rand(*shape), (index - total if rng.random() < 0.3 else index), _rand(len(index)), False]


def _take(rng: random.Random) -> list[Any]:
    x, index, *_ = _put(rng)
    return [x, index]


def _sorted(rng: random.Random) -> list[Any]:
    among, values = torch.sort(_rand(*_pick(rng, [5], [2, 4])))[0], _rand(*_pick(rng, [3], [2, 3], []))
    return [among, values, rng.random() < 0.3, rng.random() < 0.5, None, None]


def _bucketize(rng: random.Random) -> list[Any]:
    return [_rand(*rng.choice(SHAPES)), torch.sort(_rand(5))[0], rng.random() < 0.3, rng.random() < 0.5]


def _fourier(rng: random.Random) -> list[Any]:
    shape = _spatial(rng, _pick(rng, 1, 2, 3), 1, 5)
    size, dim = _pick(rng, None, 1, 3, 4, 6), rng.randrange(-len(shape), len(shape))
    return [_rand(*shape), size, dim, _pick(rng, None, "ortho", "forward", "backward")]


def _fourier_of_many(least: int) -> Maker:
    def make(rng: random.Random) -> list[Any]:
        shape = _spatial(rng, _pick(rng, 2, 3), 1, 5)
        dims = rng.sample(range(-len(shape), 0), _pick(rng, least, 2))
        sizes = _pick(rng, None, [_pick(rng, 1, 3, 4, -1) for _ in dims])
        return [_rand(*shape), sizes, dims, _pick(rng, None, "ortho", "forward", "backward")]

    return make


def _stft(rng: random.Random) -> list[Any]:
    size = _pick(rng, 4, 6)
    window = _rand(size) if rng.random() < 0.5 else None
    x, hop = _rand(*_pick(rng, [], [2]), _pick(rng, 12, 20)), _pick(rng, None, 2)
    return [x, size, hop, None, window, rng.random() < 0.3, _pick(rng, None, True, False), True, None]


def _fake(rng: random.Random) -> list[Any]:
    x, scale = 10 * _rand(*rng.choice(SHAPES)) - 5, _pick(rng, 0.1, 1.0, 0.37)
    return [x, scale, _pick(rng, 0, 3, -2), _pick(rng, 0, -8), _pick(rng, 7, 255)]


def _reshaped(rng: random.Random) -> list[Any]:
    shape = rng.choice(SHAPES)
    count = math.prod(shape)
    choices = [[count], [-1], [count, 1], [1, count], [*shape[::-1]], [*shape, 1]]
    return [_rand(*shape), rng.choice(choices)]


def _unflattened(rng: random.Random) -> list[Any]:
    x = _rand(*_pick(rng, [2], []), 6, *_pick(rng, [3], []))
    return [x, _pick(rng, 0, 1, -1), list(_pick(rng, (2, 3), (-1, 3), (6, 1), (3, 2)))]


def _expanded(rng: random.Random) -> list[Any]:
    shape = [_pick(rng, 1, 1, 3) for _ in range(_pick(rng, 0, 1, 2))]
    return [_rand(*shape), [*_pick(rng, [], [2]), *(_pick(rng, -1, n, 4 if n == 1 else n) for n in shape)], False]


def _strided(rng: random.Random) -> list[Any]:
    size, strides = _pick(rng, (2, 3), (4,), (2, 2), ()), _pick(rng, (1, 2), (3,), (0, 1), ())
    return [_rand(12), list(size), list(strides), _pick(rng, None, 0, 2)]


def _strided_like(rng: random.Random) -> list[Any]:
    x, size, stride, offset = _strided(rng)
    return [x, _rand(*size), size, stride, offset]


def _shuffled(factor: bool, up: bool) -> Maker:
    def make(rng: random.Random) -> list[Any]:
        f = _pick(rng, 1, 2, 3)
        shape = [4 * f * f if up else 2, *([2, 3] if up else [2 * f, 3 * f])] if factor else [4 * f, 2, 2]
        return [_rand(*_pick(rng, [1], [2]), *shape), f]

    return make


def _vectors(rng: random.Random) -> list[Any]:
    rows, width = _pick(rng, 1, 2), _pick(rng, 1, 3)
    shape = _pick(rng, [rows, width], [width])
    return [_rand(*shape), _rand(*shape)]


def _triplets(rng: random.Random) -> list[Any]:
    a, b = _vectors(rng)
    margin, p = _pick(rng, 1.0, 0.5), _pick(rng, 2.0, 1.0)
    return [a, b, _rand(*a.shape), margin, p, 1e-6, rng.random() < 0.4, rng.randint(0, 2)]


def _cosines(rng: random.Random) -> list[Any]:
    a, b = _vectors(rng)
    return [a, b, _signs(a.shape[:-1], rng), _pick(rng, 0.0, 0.3), rng.randint(0, 2)]


def _ranked(rng: random.Random) -> list[Any]:
    a, b = _pair()(rng)
    return [a, b, _signs(a.shape, rng), _pick(rng, 0.0, 1.0, 0.5), rng.randint(0, 2)]


def _hinge(rng: random.Random) -> list[Any]:
    shape = rng.choice(SHAPES)
    return [_rand(*shape), _signs(shape, rng), _pick(rng, 0.0, 1.0, 1.5), rng.randint(0, 2)]


def _distances(rng: random.Random) -> list[Any]:
    width, batch = _pick(rng, 1, 3), _pick(rng, [], [2])
    a, b = (_rand(*batch, _pick(rng, 1, n), width) for n in (3, 4))
    return [a, b, _pick(rng, 2.0, 1.0, 0.0, math.inf, 3.0, 0.5), None]


def _segments(rng: random.Random) -> list[Any]:
    lengths = [rng.randint(0, 3) for _ in range(3)]
    x, how = _rand(sum(lengths), *_pick(rng, [], [2])), _pick(rng, "sum", "mean", "max", "min", "prod")
    return [x, how, torch.tensor(lengths), None, None, 0, rng.random() < 0.2, _pick(rng, None, 1.5)]


def _reduction(rng: random.Random) -> int:
    return rng.randint(0, 2)


def _scattered(rng: random.Random) -> str:
    return _pick(rng, "add", "multiply")


def _flag(rng: random.Random) -> bool:
    return rng.random() < 0.5


def _polygamma(rng: random.Random) -> list[Any]:
    return [_pick(rng, 0, 1, 2, 3, 4, 7), 8 * _rand(*rng.choice(SHAPES)) - 4]


FITTING: dict[str, Maker] = {
    **{f"conv{n}d": _conv(n) for n in (1, 2, 3)},
    **{f"conv{n}d.padding": _conv(n, mode=True) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _conv(n, transposed=True) for n in (1, 2, 3)},
    "convolution": _convolution,
    "_convolution": _convolution,
    "_convolution_mode": lambda rng: _conv(_pick(rng, 1, 2, 3), mode=True)(rng),
    **{f"max_pool{n}d{more}": _pool(n, False) for n in (1, 2, 3) for more in ("", "_with_indices")},
    **{f"avg_pool{n}d": _pool(n, True) for n in (1, 2, 3)},
    **{f"{p}adaptive_{kind}_pool{n}d": _adaptive(n) for n in (1, 2, 3) for kind in ("avg", "max") for p in ("", "_")},
    "batch_norm": _normalised(0),
    "instance_norm": _normalised(1),
    "layer_norm": _layer_norm,
    "native_layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "native_group_norm": _native_group_norm,
    **{
        f"{exact}{n}d{v}": _resized(n, False, bool(v))
        for n in (1, 2, 3)
        for exact in ("upsample_nearest", "_upsample_nearest_exact")
        for v in ("", ".vec")
    },
    **{
        f"upsample_{name}{v}": _resized(n, True, bool(v))
        for n, names in ((1, ["linear1d"]), (2, ["bilinear2d", "bicubic2d"]), (3, ["trilinear3d"]))
        for name in names
        for v in ("", ".vec")
    },
    **{f"_upsample_{mode}2d_aa.vec": _resized(2, True, True) for mode in ("bilinear", "bicubic", "lanczos")},
    "__interpolate": lambda rng: _interpolated(rng, _one_size, _one_scale),
    "__interpolate.scale_list": lambda rng: _interpolated(rng, _one_size, _scales),
    "__interpolate.size_list": lambda rng: _interpolated(rng, _sizes, _one_scale),
    "__interpolate.size_list_scale_list": lambda rng: _interpolated(rng, _sizes, _scales),
    **{f"grid_sampler{n}": _grid(dims) for n, dims in (("", 2), ("_2d", 2), ("_3d", 3))},
    "nll_loss": lambda rng: _classes(rng)[:5],
    "nll_loss_nd": lambda rng: _classes(rng)[:5],
    "cross_entropy_loss": _classes,
    "multi_margin_loss": _margins,
    **{name: _pair(_reduction) for name in ("mse_loss", "l1_loss", "soft_margin_loss")},
    "binary_cross_entropy": _pair(lambda rng: None, _reduction),
    "binary_cross_entropy_with_logits": _pair(lambda rng: None, lambda rng: None, _reduction),
    **{name: _pair(_reduction, lambda rng: _pick(rng, 1.0, 0.5)) for name in ("smooth_l1_loss", "huber_loss")},
    "kl_div": _pair(_reduction, _flag),
    "poisson_nll_loss": _pair(_flag, _flag, lambda rng: 1e-8, _reduction),
    "embedding": _embedding,
    "embedding_bag": _bag,
    "lstm.input": _recurrent(4, True),
    "gru.input": _recurrent(3, False),
    "rnn_tanh.input": _recurrent(1, False),
    "rnn_relu.input": _recurrent(1, False),
    "lstm_cell": _cell(4, True),
    "gru_cell": _cell(3, False),
    "rnn_tanh_cell": _cell(1, False),
    "rnn_relu_cell": _cell(1, False),
    "linear": _linear,
    "matmul": _product(),
    "mm": _product(2, 2),
    "bmm": _product(3, 3),
    "mv": _product(2, 1),
    **{name: _product(1, 1) for name in ("dot", "vdot")},
    "inner": lambda rng: [
        *_pick(rng, [_rand(3), _rand(3)], [_rand(2, 3), _rand(4, 3)], [_rand(2, 2, 3), _rand(3)], [_rand(), _rand(2)])
    ],
    "addmm": _added(2, 2),
    "addmv": _added(2, 1),
    "baddbmm": _added(3, 3),
    "addbmm": _addbmm,
    "addr": lambda rng: (
        [_rand(*_pick(rng, [2, 3], [1, 3], [3], [])), _rand(2), _rand(3), _pick(rng, 1, 0, 2), _pick(rng, 1, -1, 0.5)]
    ),
    "tensordot": _tensordot,
    "einsum": _einsum,
    "scaled_dot_product_attention": _attention,
    **{f"{kind}_pad{n}d": _padded(n) for n in (1, 2, 3) for kind in ("reflection", "replication")},
    "pad": _pad,
    "constant_pad_nd": _constant_pad,
    "im2col": _unfolded,
    "col2im": _folded,
    "cosine_similarity": _pair(lambda rng: _pick(rng, 0, 1, -1), lambda rng: 1e-8),
    "pairwise_distance": lambda rng: [*_vectors(rng), _pick(rng, 2.0, 1.0, 3.0, math.inf), 1e-6, rng.random() < 0.5],
    "cdist": _distances,
    "pdist": lambda rng: [_rand(*_spatial(rng, 2, 1, 4)), _pick(rng, 2.0, 1.0, 0.0, math.inf)],
    "cosine_embedding_loss": _cosines,
    "triplet_margin_loss": _triplets,
    "margin_ranking_loss": _ranked,
    "hinge_embedding_loss": _hinge,
    **{f"linalg_{name}": _square() for name in "inv det eigvals slogdet matrix_exp".split()},
    **{name: _square() for name in ("slogdet", "logdet")},
    "linalg_inv_ex": _square(_flag),
    **{name: _square(lambda rng: _pick(rng, "L", "U")) for name in ("linalg_eigh", "linalg_eigvalsh")},
    "linalg_matrix_power": _square(lambda rng: _pick(rng, 0, 1, 2, 3, -1, -2)),
    "linalg_solve": _system,
    "linalg_solve_ex": lambda rng: [*_system(rng), False],
    "linalg_solve_triangular": _triangular,
    "triangular_solve": _triangular_solve,
    "linalg_lstsq": _lstsq,
    "linalg_svd": _any_matrix(_flag, lambda rng: None),
    "linalg_svdvals": _any_matrix(lambda rng: None),
    "linalg_qr": _any_matrix(lambda rng: _pick(rng, "reduced", "complete", "r")),
    "pinverse": _any_matrix(lambda rng: 1e-15),
    "linalg_multi_dot": lambda rng: [[_rand(2, 3), _rand(3, 1), *_pick(rng, [], [_rand(1, 2)])]],
    "chain_matmul": lambda rng: [[_rand(2, 3), _rand(3, 1), *_pick(rng, [], [_rand(1, 2)])]],
    **{
        name: (lambda rng: [_rand(*_pick(rng, [], [2]), 3), _rand(*_pick(rng, [], [2]), 3), -1])
        for name in ("cross", "linalg_cross", "linalg_vecdot")
    },
    "outer": lambda rng: [_rand(_pick(rng, 0, 1, 3)), _rand(_pick(rng, 1, 2))],
    "cov": lambda rng: [_rand(*_pick(rng, [4], [2, 5], [1, 1], [])), _pick(rng, 0, 1, 2), None, None],
    "corrcoef": lambda rng: [_rand(*_pick(rng, [4], [2, 5], [3, 3], []))],
    "gather": _along(lambda rng: False),
    "take_along_dim": lambda rng: [(made := _along()(rng))[0], made[2], made[1]],
    **{f"scatter{s}.src": _along(source="tensor") for s in ("", "_")},
    **{f"scatter{s}.value": _along(source="value") for s in ("", "_")},
    **{f"scatter{s}.reduce": _along(_scattered, source="tensor") for s in ("", "_")},
    **{f"scatter{s}.value_reduce": _along(_scattered, source="value") for s in ("", "_")},
    "scatter_add": _along(source="tensor"),
    "scatter_reduce": _along(lambda rng: _pick(rng, "sum", "prod", "mean", "amax", "amin"), _flag, source="tensor"),
    "index_select": _slices(),
    "index_add": _slices(lambda rng: _pick(rng, 1, 2, 0.5), source="tensor"),
    "index_copy": _slices(source="tensor"),
    **{f"index_fill{s}.int_Scalar": _slices(source="value") for s in ("", "_")},
    **{f"index_fill{s}.int_Tensor": _slices(source="scalar") for s in ("", "_")},
    "index_reduce": _slices(lambda rng: _pick(rng, "prod", "mean", "amax", "amin"), _flag, source="tensor"),
    "index.Tensor": _index,
    "index_put": _index_put,
    "put": _put,
    "take": _take,
    "searchsorted.Tensor": _sorted,
    "bucketize.Tensor": _bucketize,
    **{f"fft_{name}": _fourier for name in ("fft", "ifft", "rfft", "irfft")},
    **{f"fft_{name}": _fourier_of_many(2) for name in ("fft2", "ifft2", "rfft2", "irfft2")},
    **{f"fft_{name}": _fourier_of_many(1) for name in ("fftn", "ifftn", "rfftn", "irfftn")},
    "stft": _stft,
    "fake_quantize_per_tensor_affine": _fake,
    "view": _reshaped,
    "reshape": _reshaped,
    "unflatten": _unflattened,
    "expand": _expanded,
    "broadcast_to": lambda rng: _expanded(rng)[:2],
    "as_strided": _strided,
    "as_strided_copy": _strided,
    "as_strided_scatter": _strided_like,
    "pixel_shuffle": _shuffled(True, True),
    "pixel_unshuffle": _shuffled(True, False),
    "channel_shuffle": _shuffled(False, True),
    "segment_reduce": _segments,
    "polygamma": _polygamma,
    "polygamma_": lambda rng: _polygamma(rng)[::-1],
    "view_as_complex": lambda rng: [_rand(*_pick(rng, [], [3], [2, 3]), 2)],
    "complex": _pair(),
    "polar": _pair(),
    "fake_quantize_per_tensor_affine.tensor_qparams": lambda rng: (
        [(given := _fake(rng))[0], _rand(1), torch.zeros(1, dtype=torch.int32), *given[3:]]
    ),
    "heaviside": _pair(),
    "renorm": lambda rng: [_rand(3, 4), _pick(rng, 2, 1, 3), _pick(rng, 0, 1, -1), _pick(rng, 1, 0.5)],
    "one_hot": lambda rng: [_indices(rng.choice(SHAPES), 4, rng), _pick(rng, -1, 4, 6)],
    "bincount": lambda rng: [_indices([6], 4, rng), _pick(rng, None, _rand(6)), _pick(rng, 0, 7)],
    "repeat_interleave.Tensor": lambda rng: [_indices([_pick(rng, 0, 3)], 3, rng), None],
    "repeat_interleave.self_Tensor": lambda rng: [_rand(3, 2), _indices([_pick(rng, 1, 3)], 3, rng), 0, None],
    "glu": lambda rng: [_rand(*_pick(rng, [4], [2, 4], [2, 2, 2])), -1],
    "prelu": lambda rng: [_rand(2, 3, *_pick(rng, [], [2])), _rand(_pick(rng, 1, 3))],
    "max_unpool2d": lambda rng: [_rand(1, 2, 2), torch.tensor([[[0, 3], [9, 14]]]), [4, 4]],
}
"""By name, or name and overload, without ``aten::``: float tensors are filled anew afterwards."""
