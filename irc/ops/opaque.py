"""Nodes of ONNX operators that irc does not know: they pass through, from the file to the output.

Their kind is ``opaque.DOMAIN::NAME``, so that nothing takes them for an operator that is known: one of the same name
at another version, an in-place form, or one of TorchScript. ONNX is functional: such a node writes into none of its
inputs. Its results may share memory with anything, and it may act on the world, so it is never merged, removed or
moved past others that do.

Invariants of these nodes, beside what holds for all:

- ``version`` is that of the operator set they were imported with;
- a nested graph without captures is an attribute, one with captures a block; `GRAPHS` lists both, in order;
- what the IR cannot hold exactly (sparse tensors, types, lists without elements...) stands in `PROTOS`, serialised.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from irc.ir import Block, Graph, Node, with_subgraphs

PREFIX = "opaque."

RESERVED = "irc."
"""How the attributes below begin. An attribute of the model that does so too stands in `PROTOS`."""

GRAPHS = "irc.graphs"
"""Attribute: for each nested graph, the field of ``AttributeProto`` it was in (``g``, ``graphs``), ``:`` and its
name. Those of a list follow each other."""

TYPES = "irc.types"
"""Attribute: the types that each nested graph declares of its inputs, then of its outputs; "" where it declares none.
The IR's own lack shapes, as in all nested graphs."""

NAMES = "irc.names"
"""Attribute: what the model calls each nested graph that is a block, its inputs and its outputs."""

PROTOS = "irc.attributes"
"""Attribute: the ``AttributeProto`` messages kept as they are, in base64."""

OMITTED = "irc.omitted_outputs"
"""Attribute: positions of the outputs that the model gives no name."""


def opaque_kind(domain: str, op_type: str) -> str:
    """The kind of opaque nodes for an operator; ``domain`` is "" for ONNX's standard operators."""
    return f"{PREFIX}{domain or 'ai.onnx'}::{op_type}"


def is_opaque(kind: str) -> bool:
    """Whether ``kind`` is that of opaque nodes."""
    return kind.startswith(PREFIX)


def opaque_operator(kind: str) -> tuple[str, str]:
    """Domain ("" for ONNX's own) and name of the operator that opaque nodes of ``kind`` stand for."""
    domain, _, op_type = kind.removeprefix(PREFIX).partition("::")
    return "" if domain == "ai.onnx" else domain, op_type


def opaque_operators(*graphs: Graph) -> dict[str, list[Node]]:
    """The opaque nodes of ``graphs`` by operator, as messages name it: ``MyOp (domain acme, opset 1)``.

    Nested nodes, and those of graphs in attributes, are among them.
    """
    found: dict[str, list[Node]] = {}
    for node in (node for node in with_subgraphs(*graphs) if is_opaque(node.kind)):
        domain, op_type = opaque_operator(node.kind)
        found.setdefault(f"{op_type} (domain {domain or 'ai.onnx'}, opset {node.version})", []).append(node)
    return dict(sorted(found.items()))


class Nested(NamedTuple):
    """A graph nested in an opaque node.

    Attributes:
        field: the field of ``AttributeProto`` that holds it.
        name: the attribute's name.
        key: the node's attribute that holds the graph; None if it is a block.
        body: the graph, or the block.
    """

    field: str
    name: str
    key: str | None
    body: Graph | Block


def nested_graphs(node: Node) -> list[Nested] | None:
    """The graphs nested in an opaque node, in order; None if `GRAPHS` does not fit the node."""
    given: Any = node.attributes.get(GRAPHS, [])
    entries = cast("list[Any]", given) if isinstance(given, list) else [None]
    blocks, found, used = iter(node.blocks), list[Nested](), set[str]()
    counts: dict[str, int] = {}
    for entry in entries:
        field, _, name = entry.partition(":") if isinstance(entry, str) else ("", "", "")
        if field not in ("g", "graphs"):
            return None
        key = graph_key(field, name, counts.setdefault(name, 0))
        counts[name] += 1
        graph = node.attributes.get(key)
        if isinstance(graph, Graph):
            used.add(key)
            found.append(Nested(field, name, key, graph))
        elif (block := next(blocks, None)) is not None:
            found.append(Nested(field, name, None, block))
        else:
            return None
    held = {key for key, value in node.attributes.items() if isinstance(value, Graph)}
    return found if held == used and next(blocks, None) is None else None


def graph_key(field: str, name: str, number: int) -> str:
    """The node's attribute for the graph with that number in the model's attribute ``name``."""
    return name if field == "g" else f"{name}[{number}]"
