"""Results of a run that can be requested by name: outputs, and elements of outputs that are tuples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from irc.ir.types import TupleType
from irc.runtime.arguments import Argument

if TYPE_CHECKING:
    from irc.ir import Value

Path = tuple[int, ...]
"""The position of an output; of an element of it that is a tuple, then the position in that, and so on."""

_TUPLE = "prim::TupleConstruct"


class Result(NamedTuple):
    """An output, or an element of one.

    Attributes:
        argument: its name and type.
        path: where it is.
    """

    argument: Argument
    path: Path


def results_of(outputs: Sequence[Argument]) -> dict[str, Result]:
    """Every result by name: outputs, and elements of tuples as ``output.0``, where no output is called that."""
    found = {output.name: Result(output, (i,)) for i, output in enumerate(outputs)}
    for output in tuple(found.values()):
        for element in _elements(output):
            found.setdefault(element.argument.name, element)
    return found


def _elements(whole: Result) -> Iterator[Result]:
    argument, path = whole
    for i, type in enumerate(argument.type.elems if isinstance(argument.type, TupleType) else ()):
        element = Result(Argument(f"{argument.name}.{i}", type), (*path, i))
        yield element
        yield from _elements(element)


def element(values: Any, path: Iterable[int]) -> Any:
    """What is at ``path`` among the values that a run returns."""
    for place in path:
        values = values[place]
    return values


def value_at(outputs: Sequence[Value], path: Path) -> Value:
    """The value at ``path`` among a graph's outputs; if a tuple on the way is not constructed there, that tuple."""
    value = outputs[path[0]]
    for place in path[1:]:
        made = value.made_by(_TUPLE)
        if made is None:
            return value
        value = made.inputs[place]
    return value


def values_at(outputs: Iterable[Value]) -> Iterable[Value]:
    """All values that `value_at` may return for any path."""
    found: dict[Value, None] = {}
    pending = list(outputs)
    while pending:
        value = pending.pop()
        if value not in found:
            found[value] = None
            made = value.made_by(_TUPLE)
            if made is not None:
                pending.extend(made.inputs)
    return found
