"""Shape and type inference; rules are in the records of operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from irc.ir import Graph
from irc.passes.base import PassContext
from irc.passes.registry import register
from irc.passes.shapes.infer import Inference

__all__ = ["Inference", "ShapeInference"]


@register
@dataclass(frozen=True)
class ShapeInference:
    """Infer element types and shapes, keeping ONNX's named dimensions."""

    name: ClassVar[str] = "shape-inference"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Refine the type of every value; changes no node."""
        return Inference.in_pass(graph, ctx).run().changed
