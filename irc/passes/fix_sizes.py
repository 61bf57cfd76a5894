"""Fixing sizes: named dimensions of the inputs become numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from irc.errors import Error, suggestion
from irc.ir import Graph
from irc.ir.declarations import FIXED_SIZES, change_declared, change_declared_type, fixed_sizes, read_sizes, sizes_text
from irc.ir.types import DictType, ListType, TensorType, Type
from irc.passes.base import PassContext
from irc.passes.registry import register


@register
@dataclass(frozen=True)
class FixSizes:
    """Replace named dimensions of inputs by numbers, in all types: shape arithmetic can be folded then.

    Afterwards the model takes only inputs of these sizes, and its metadata say so. A name that contains others, such
    as ``past + new``, is a name of its own. Names in a function that the main graph calls are separate, too.

    Attributes:
        sizes: as ``batch=1,sequence=8``; names that hold commas, quotes or equals signs are quoted.
    """

    name: ClassVar[str] = "fix-sizes"
    sizes: str = ""

    def __post_init__(self) -> None:
        read_sizes(self.sizes)

    @staticmethod
    def of(sizes: Mapping[str, int]) -> FixSizes:
        """The pass for sizes by name; Error IRC303 if ``sizes`` cannot be such sizes."""
        with suppress(ValueError, AttributeError, TypeError):  # callers may give anything
            text = sizes_text(sizes)
            if read_sizes(text) == sizes:
                return FixSizes(text)
        raise Error("IRC303", f"sizes are integers from 0 on by name, such as {{'batch': 1}}, not {sizes!r:.80}")

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Give the values of ``graph`` other types. IRC311 if no input has a dimension of one of the names."""
        sizes = read_sizes(self.sizes)
        if not sizes or graph.is_function:
            return False
        main = graph.module if graph.is_main else None
        # A graph alone has no metadata: what is said of it is remembered until the pipeline ends.
        alone: dict[str, str] = ctx.memory.setdefault((FIXED_SIZES, graph), {})
        metadata = alone if main is None else main.metadata
        before = fixed_sizes(metadata)
        named = dict.fromkeys(name for value in graph.inputs for name in _names(value.type))
        for name, size in sizes.items():
            if name in named or before.get(name) == size:
                continue
            if name in before:
                raise Error("IRC311", f"dimension {name!r} is {before[name]} already: it cannot be {size}")
            raise Error("IRC311", f"the model has no named dimension {name!r}; {suggestion(name, named)}")
        found = {name: size for name, size in sizes.items() if name in named}
        if not found:
            return False
        inputs = frozenset(graph.inputs)
        for value in graph.values():
            value.type = _fixed(value.type, found, value in inputs)
            change_declared_type(value, partial(_fixed, sizes=found))
        change_declared(metadata, partial(_fixed, sizes=found))
        metadata[FIXED_SIZES] = sizes_text(before | found)
        ctx.count("fixed", len(found))
        return True


def _names(type: Type) -> Iterator[str]:
    """The names of dimensions in ``type``."""
    yield from (size for size in type.shape or () if isinstance(size, str))
    for part in type.inner:
        yield from _names(part)


def _fixed(type: Type, sizes: Mapping[str, int], everywhere: bool = True) -> Type:
    """``type`` with numbers for names.

    A name may stand for a different size in each element of a list or dict. The elements of an input are all checked
    when it is passed (``everywhere``); for those that the graph makes, the size is not known.
    """
    if isinstance(type, TensorType):
        if not type.shape or sizes.keys().isdisjoint(type.shape):
            return type
        return TensorType(type.dtype, tuple([sizes.get(d, d) if isinstance(d, str) else d for d in type.shape]))
    if isinstance(type, ListType | DictType) and not everywhere:
        return type
    return type.of([_fixed(part, sizes, everywhere) for part in type.inner])
