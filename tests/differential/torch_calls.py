"""Random calls of torch's operators, by the types and names of their arguments."""

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from irc.ir import ListType, OptionalType, TensorType, Type, types
from irc.ir.schema import Argument, Schema
from tests.differential.recipes import recipes

IMPOSSIBLE = (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError)
"""What torch raises for arguments that do not go together."""

SHAPES = ((2, 3), (3, 3), (3,), (1, 4, 4, 4), (4, 4, 1, 1), (), (1,), (2, 3, 4), (4,), (1, 1), (2, 3, 3), (0,))

_STRINGS = {
    "equation": ("i->i", "ij->ij", "ij->ji", "ij,jk->ik", "i,j->ij", "ii->i", "..."),
    "indexing": ("ij", "xy"),
    "mode": ("constant", "reflect", "replicate"),
    "rounding_mode": ("floor", "trunc"),
    "approximate": ("none", "tanh"),
    "padding": ("valid", "same"),
    "reduce": ("sum", "mean", "amax", "prod", "multiply"),
    "interpolation": ("linear", "nearest"),
    "ord": ("fro", "nuc"),
}
_INTS = {
    "dtype": (torch.float32, torch.float32, torch.float64, torch.int64),
    "memory_format": (torch.contiguous_format, torch.preserve_format, torch.channels_last),
    "layout": (torch.strided,),
    "groups": (1, 2),
    "upscale_factor": (1, 2),
    "downscale_factor": (1, 2),
    "reduction": (0, 1, 2),
}
_SMALL = (0, 1, 2, -1, 3, 4)
_DIMS = ((0,), (1,), (0, 1), (-1,), (2, 3), ())
_LISTS = {
    "size": ((2, 3), (3, 2), (6,), (1, 2, 3), (-1,), (3, 3), (1, 3), (), (4, 4), (2, 2), (1, 1)),
    "sizes": ((1, 2), (2, 1), (1, 3), (3,), (-1,)),
    "stride": ((1,), (3, 1), (1, 1), (2,), (1, 2)),
    "kernel_size": ((1,), (2,), (1, 1), (2, 2), (1, 1, 1)),
    "output_size": ((2,), (2, 2), (1,), (4, 4), (2, 2, 2), (1, 1, 1), (4,)),
    "dilation": ((1,), (1, 1), (1, 1, 1)),
    "output_padding": ((0,), (0, 0), (0, 0, 0)),
    "padding": ((0,), (0, 0), (0, 0, 0), (1,), (0, 0, 0, 0)),
    "pad": ((0, 0), (0, 0, 0, 0), (1, 0), (1, 1, 1, 1)),
    "normalized_shape": ((3,), (4,), (2, 3), (4, 4)),
    "dims": ((0,), (1,), (0, 1), (1, 0), (0, 1, 2), (0, 1, 2, 3), ()),
    "split_sizes": ((1, 1), (2,), (3,), (1, 2), (1, 1, 1)),
    "split_size": ((1, 1), (2,), (3,), (1, 2), (1, 1, 1)),
    "repeats": ((1,), (1, 1), (2, 1), (1, 1, 1)),
    "shifts": ((0,), (1,), (0, 0)),
}


def calls(schema: Schema, rng: random.Random) -> Iterator[list[Any]]:
    """Endless arguments, which may or may not be possible."""
    recipe = recipes().get(f"{schema.name}.{schema.overload}".rstrip("."))
    while True:
        yield recipe() if recipe else _Arguments(rng).of(schema)


def call(schema: Schema, arguments: list[Any]) -> Any:
    """The results of torch's operator of that name and overload; one of ``IMPOSSIBLE`` if there are none."""
    positional = [v for a, v in zip(schema.arguments, arguments) if not a.keyword_only]
    named = {a.name: v for a, v in zip(schema.arguments, arguments) if a.keyword_only}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        return torch._C._get_operation_overload(schema.name, schema.overload)[0](*positional, **named)


class _Arguments:
    """The arguments of one call; often all its tensors are alike."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.shape = rng.choice(SHAPES) if rng.random() < 0.4 else None
        self.dtype = torch.float32 if rng.random() < 0.6 else None

    def of(self, schema: Schema) -> list[Any]:
        return [self._argument(a) for a in schema.arguments]

    def _argument(self, argument: Argument) -> Any:
        if argument.has_default and argument.default is not None and self.rng.random() < 0.6:
            return _default(argument)
        return self._value(argument.type, argument.name)

    def _value(self, type: Type, name: str) -> Any:
        choose = self.rng.choice
        if isinstance(type, OptionalType):
            return None if self.rng.random() < 0.6 else self._value(type.elem, name)
        if isinstance(type, TensorType):
            return self._tensor(name)
        if isinstance(type, ListType):
            if type.elem == types.INT:
                return list(choose(_LISTS.get(name, _DIMS)))
            if isinstance(type.elem, TensorType):
                same = self._tensor(name)
                return [same.clone() for _ in range(choose((1, 1, 2)))]
            return [self._value(type.elem, name) for _ in range(choose((1, 2)))]
        if type == types.INT:
            return choose(_INTS.get(name, _SMALL))
        if type == types.SCALAR:
            return choose((0, 1, 2, 0.5, -1))
        if type == types.FLOAT:
            return choose((0.0, 0.5, 1.0))
        if type == types.BOOL:
            return self.rng.random() < 0.5
        if type == types.STR:
            return choose(_STRINGS.get(name, ("a", "b")))
        if type == types.DEVICE:
            return torch.device("cpu")
        return None

    def _tensor(self, name: str) -> torch.Tensor:
        shape = self.rng.choice(SHAPES) if self.shape is None else self.shape
        if name in ("mask", "condition"):
            return torch.randint(0, 2, shape).bool()
        if name in ("index", "indices", "tensor_indices_or_sections"):
            return torch.zeros(shape, dtype=torch.int64)
        return self.rng.choice(_TENSORS)(shape, self.rng) if self.dtype is None else _floats(shape, self.rng)


def _floats(shape: tuple[int, ...], rng: random.Random) -> torch.Tensor:
    x = torch.rand(shape)
    if x.dim() == 4 and rng.random() < 0.2:
        return x.contiguous(memory_format=torch.channels_last)
    return x.mT if x.dim() >= 2 and rng.random() < 0.2 else x


_TENSORS: tuple[Callable[[tuple[int, ...], random.Random], torch.Tensor], ...] = (
    _floats,
    lambda shape, _: torch.randint(0, 2, shape),
    lambda shape, _: torch.randint(0, 2, shape).bool(),
    lambda shape, _: torch.randn(shape, dtype=torch.complex64),
)


def _default(argument: Argument) -> Any:
    """The default of an argument; enumerations are integers in schemas only."""
    if isinstance(argument.type, ListType) and not isinstance(argument.default, list):
        return [argument.default] * (argument.size or 1)
    if argument.name == "memory_format":
        return torch.contiguous_format
    return torch.int64 if argument.name == "dtype" else argument.default
