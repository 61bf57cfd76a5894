"""By what means irc computes a model: its own kernels, function bodies of ONNX, onnx.reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from onnx import ModelProto, NodeProto, defs

from irc.errors import Error
from irc.frontend.onnx import import_model
from irc.ir import Module, Node
from irc.ops import record
from irc.runtime import kernels
from irc.runtime.kernels.registry import find_binder

OWN = "own kernels"
BODY = "function body"
REFERENCE = "onnx.reference"
REFUSED = "refused"

BLOCKS = frozenset(("onnx::If", "onnx::Loop", "onnx::Scan", "onnx::SequenceMap"))
"""Operators that import as control flow of the IR."""


class Means(NamedTuple):
    """How a model is computed.

    Attributes:
        by: `OWN`, `BODY`, `REFERENCE` or `REFUSED`.
        reference: the operators, ``ai.onnx.ml::LabelEncoder``, that onnx.reference computes.
    """

    by: str
    reference: frozenset[str]


def of(model: ModelProto) -> Means:
    """The means of a model, as it is imported: passes change no operators into those of the reference."""
    try:
        module = import_model(model)
    except Error:
        return Means(REFUSED, frozenset())
    found = {n.kind: kernels.means(n) for n in _nodes(module) if not (n.blocks or n.kind.startswith("prim::"))}
    reference = frozenset(kind for kind, by in found.items() if by == "reference")
    if None in found.values():
        return Means(REFUSED, reference)
    if reference:
        return Means(REFERENCE, reference)
    is_expanded = any(record(f"{n.domain or 'onnx'}::{n.op_type}").expanded for n in _protos(model))
    return Means(BODY if is_expanded else OWN, reference)


def by_reference() -> list[str]:
    """Every operator of the installed onnx that irc leaves to onnx.reference in some version."""
    schemas = [(f"{s.domain or 'onnx'}::{s.name}", s) for s in defs.get_all_schemas_with_history() if not s.deprecated]
    return sorted({k for k, s in schemas if not (k in BLOCKS or record(k).expanded or find_binder(k, s.since_version))})


def _nodes(module: Module) -> Iterator[Node]:
    for graph in module.graphs.values():
        yield from graph.walk()


def _protos(model: ModelProto) -> Iterator[NodeProto]:
    pending = [*model.graph.node, *(n for f in model.functions for n in f.node)]
    while pending:
        node = pending.pop()
        yield node
        pending += [n for a in node.attribute for g in (a.g, *a.graphs) for n in g.node]
