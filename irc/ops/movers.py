"""ONNX operators that only move elements: each element of a result is one of the first input's."""

from __future__ import annotations

ORDERED = frozenset(f"onnx::{name}" for name in "Flatten Identity Reshape Squeeze Unsqueeze".split())
"""All elements, each once, in their order: only the shape is another."""

PERMUTING = frozenset(f"onnx::{name}" for name in "DepthToSpace SpaceToDepth Transpose".split())
"""All elements, each once, in another order."""

SELECTING = frozenset(f"onnx::{name}" for name in "Expand Slice Split Tile".split())
"""Some elements, or some of them several times."""

MOVERS = ORDERED | PERMUTING | SELECTING
