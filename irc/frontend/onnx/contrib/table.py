"""Rows of the table of operators of other domains: a signature in words, and a function that writes the body."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irc.frontend.onnx.contrib.body import Body

MICROSOFT = "com.microsoft"

Default = float | int | str | tuple[float, ...] | tuple[str, ...] | None
"""The value of an attribute that a node does not give; (): it has none; None: a node must give it."""

_TYPES: dict[str, tuple[int, Callable[[str], Default]]] = {
    "float": (1, float),
    "int": (2, int),
    "string": (3, str),
    "floats": (6, tuple),
    "ints": (7, tuple),
    "strings": (8, tuple),
}
"""Type of attributes -> its number in ``AttributeProto``, and what a default means."""


_VARIADIC = "..."


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """An operator.

    Attributes:
        name: its name.
        domain: its domain.
        attributes: name -> (``AttributeProto`` type number, default).
        inputs: name -> whether it may be absent.
        outputs: likewise.
        is_variadic: whether the last input may be repeated; bodies refer to each by its name and a number.
        body: appends the operator's nodes to a body, and returns its outputs; no wanted one may be missing.
        since: the first opset of the standard operators that has all that bodies use.
        lowest: the first opset in which a body might be written otherwise.
    """

    name: str
    domain: str
    attributes: dict[str, tuple[int, Default]]
    inputs: dict[str, bool]
    outputs: dict[str, bool]
    is_variadic: bool
    body: Callable[[Body], tuple[str, ...] | str]
    since: int
    lowest: int = 11

    def opsets(self, opset: int) -> Iterator[int]:
        """The opsets that a body may be of in a model of ``opset``, nearest first; bodies are sure to be possible in
        the last one.
        """
        first = max(opset, min(self.lowest, self.since))
        yield from range(first, self.since)
        yield max(first, self.since)

    def input_names(self, count: int) -> list[str]:
        """The names of the inputs of a node with ``count`` of them."""
        *names, last = self.inputs
        repeated = [f"{last}{i}" for i in range(count - len(names))] if self.is_variadic else [last]
        return [*names, *repeated]

    @property
    def kind(self) -> str:
        """The kind of its nodes; once imported, a model has none of them."""
        return f"{self.domain or 'onnx'}::{self.name}"

    def __str__(self) -> str:
        inputs, outputs = (
            ", ".join(f"{name}{'?' if may_be_absent else ''}" for name, may_be_absent in formals.items())
            for formals in (self.inputs, self.outputs)
        )
        return f"{self.kind}({inputs}{_VARIADIC if self.is_variadic else ''}) -> {outputs}"


def row(
    signature: str,
    body: Callable[[Body], tuple[str, ...] | str],
    attributes: str = "",
    since: int = 18,
    domain: str = MICROSOFT,
    lowest: int = 11,
) -> Row:
    """A row, as operators are written down.

    Args:
        signature: ``Name(input, optional?) -> output, optional?``; ``inputs...``, the last, may be any number.
        body: what writes bodies.
        attributes: ``int required, float with_default = 1, float without =``.
        since: the opset of bodies.
        domain: that of the operator.
        lowest: the first opset that bodies might be written for.
    """
    left, _, outputs = signature.partition("->")
    name, _, inputs = left.strip().removesuffix(")").partition("(")
    return Row(
        name,
        domain,
        dict(map(_attribute, _words(attributes))),
        _formals(inputs.removesuffix(_VARIADIC)),
        _formals(outputs),
        inputs.endswith(_VARIADIC),
        body,
        since,
        lowest,
    )


def _attribute(text: str) -> tuple[str, tuple[int, Default]]:
    declared, has_default, default = text.partition("=")
    type, name = declared.split()
    number, read = _TYPES[type]
    value = default.strip()
    return name, (number, None if not has_default else read(value) if value or type == "string" else ())


def _formals(text: str) -> dict[str, bool]:
    return {word.removesuffix("?"): word.endswith("?") for word in _words(text)}


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
