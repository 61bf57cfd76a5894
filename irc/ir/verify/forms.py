"""Parts of the rules of single operators: numbers of inputs, outputs and blocks, and which values may become which."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irc.ir.node import Node
from irc.ir.types import Type, without_shapes
from irc.ir.value import Value
from irc.ir.verify.diagnostics import node_error
from irc.ir.verify.type_relation import accepts
from irc.support.formatting import count

Form = Callable[[Node], None]
"""Checks the form of a node."""


def require(node: Node, holds: bool, message: str) -> None:
    """Error IRC213 with ``message`` unless it holds."""
    if not holds:
        raise node_error("IRC213", message, node)


def has(node: Node, *, inputs: int | None = None, outputs: int | None = None, blocks: int = 0) -> None:
    """Require exact numbers (None: any)."""
    for what, wanted, found in (
        ("input", inputs, len(node.inputs)),
        ("output", outputs, len(node.outputs)),
        ("block", blocks, len(node.blocks)),
    ):
        if wanted is not None and wanted != found:
            raise node_error("IRC213", f"{node.kind} must have {count(wanted, what)} here, not {found}", node)


def flows(
    node: Node, sources: Sequence[Value], targets: Sequence[Value], what: str, of_any_shape: bool = False
) -> None:
    """Check that each of ``sources`` may become the corresponding one of ``targets`` (IRC214).

    With ``of_any_shape``, their shapes may differ, as those of carried values do.
    """
    for source, target in zip(sources, targets, strict=False):
        if source.type == target.type:
            continue
        formal, actual = map(without_shapes, (target.type, source.type)) if of_any_shape else (target.type, source.type)
        if not accepts(formal, actual):
            message = f"%{source.name} : {source.type} cannot become {what} %{target.name} : {target.type}"
            raise node_error("IRC214", message, node)


def gives(node: Node, sources: Sequence[Type]) -> None:
    """Check that values of the types ``sources`` may become the corresponding outputs (IRC214)."""
    for i, (source, output) in enumerate(zip(sources, node.outputs, strict=True)):
        if source != output.type and not accepts(output.type, source):
            raise node_error("IRC214", f"{source} cannot become %{output.name} : {output.type}", node, output=i)


def counts(inputs: int | None, outputs: int | None) -> Form:
    """The rule of operators that have exactly these numbers of inputs and outputs (None: any)."""
    return lambda node: has(node, inputs=inputs, outputs=outputs)


def handing_on(inputs: int | None = None, outputs: int | None = None) -> Form:
    """The rule of operators that pass input i on as output i, with exactly these numbers of them (None: any)."""

    def rule(node: Node) -> None:
        has(node, inputs=inputs, outputs=outputs)
        flows(node, node.inputs, node.outputs, "output")

    return rule
