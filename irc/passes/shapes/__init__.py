"""Shape and type inference; the rules of ``aten::`` and ``prim::`` operators are in their records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from irc.passes.registry import register
from irc.passes.shapes import (
    index,
    nn,
    pointwise,
    shaping,
    signal,
)
from irc.passes.shapes.infer import Inference

if TYPE_CHECKING:
    from irc.ir import Graph
    from irc.passes.base import PassContext

__all__ = ["FAMILIES", "Inference", "ShapeInference"]

FAMILIES = (index, nn, pointwise, shaping, signal)
"""Modules whose import has filled the table of rules."""


@register
@dataclass(frozen=True)
class ShapeInference:
    """Infer element types and shapes, keeping ONNX's named dimensions."""

    name: ClassVar[str] = "shape-inference"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Refine the type of every value; changes no node."""
        return Inference.in_pass(graph, ctx).run().changed
