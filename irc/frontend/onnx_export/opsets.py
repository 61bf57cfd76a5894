"""The operator sets of a model that is being written: in them, every node means the version it is bound to.

Perhaps no operator set has all versions, such as after a function with other imports was inlined. Then a node
may be written as a newer version that only accepts more (types, attributes, inputs), or as an older one if the node
uses nothing that the newer one added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from irc.errors import Error
from irc.frontend.onnx_export.operators import (
    AXES_BECAME_INPUT,
    FOREVER,
    first_alike,
    identity_since,
    last_alike,
    opsets_of,
    versions,
)
from irc.frontend.onnx_export.spelling import can_be_spelt, first_opset
from irc.ops.onnx_defs import newest_opset, split_kind
from irc.ops.opaque import is_opaque, opaque_operator

if TYPE_CHECKING:
    from irc.ir import Node

_IMPORT = "opset_import."

DEFAULT = 17
"""The opset of graphs that no operator ties to one."""


def choose(nodes: Iterable[Node], metadata: Mapping[str, str]) -> dict[str, int]:
    """Domain -> version of its operator set: that of the imported model, or the nearest to it that fits all nodes.

    Args:
        nodes: all nodes of the module, nested ones too.
        metadata: the module's; it names the operator sets of the imported model.

    Raises:
        Error: IRC351 if no version fits all nodes.
    """
    wanted: dict[str, int] = {}
    for key, version in metadata.items():
        if key.startswith(_IMPORT) and version.isascii() and version.isdecimal():
            domain = key.removeprefix(_IMPORT)
            wanted["" if domain == "ai.onnx" else domain] = int(version)
    bounds: dict[str, list[tuple[int, int, Node]]] = {"": []}
    for node in nodes:
        namespace = node.kind.partition("::")[0]
        if can_be_spelt(node):
            bounds[""].append((first_opset(node), FOREVER, node))
        elif node.kind == "onnx::Identity" and node.version is None:  # passes put it in to keep a name
            bounds[""].append((identity_since(node.output.type), FOREVER, node))
        elif is_opaque(node.kind):
            version = node.version or 1
            bounds.setdefault(opaque_operator(node.kind)[0], []).append((version, version, node))
        elif namespace != "prim":
            first, last = opsets_of(node.kind, node.version)
            since = AXES_BECAME_INPUT.get(node.kind, 0)
            if last < since:
                last = last_alike(node.kind, since)  # spelt as newer ones are
            bounds.setdefault(split_kind(node.kind)[0], []).append((first, last, node))
    for found in bounds.values():
        if found and max(first for first, _, _ in found) > min(last for _, last, _ in found):
            found[:] = [
                (min(first, _first_alike(node)), max(last, _last_alike(node)), node) for first, last, node in found
            ]
    return {domain: _meet(domain, found, wanted.get(domain)) for domain, found in bounds.items()}


def _first_alike(node: Node) -> int:
    """The first opset in which ``node`` could be written, perhaps as another version; no limit if it is unknown."""
    return first_alike(node) if versions(node.kind) else FOREVER


def _last_alike(node: Node) -> int:
    """The last opset in which ``node`` could be written, perhaps as another version; 0 for unknown operators."""
    return last_alike(node.kind, node.version) if versions(node.kind) else 0


def _meet(domain: str, bounds: list[tuple[int, int, Node]], wanted: int | None) -> int:
    known = newest_opset(domain, 0)
    newest = known or FOREVER  # of domains that the onnx package does not know, there may be any
    first = max(bounds, key=lambda bound: bound[0], default=None)
    last = min(bounds, key=lambda bound: bound[1], default=None)
    if first is None or last is None:
        return min(wanted or DEFAULT, newest)
    if first[0] > last[1]:
        old, new = last[2], first[2]
        raise Error(
            "IRC351",
            f"no operator set of {domain or 'ai.onnx'} has both {old.kind} as it was up to version {last[1]} "
            f"(%{old.outputs[0].name}) and {new.kind} as it is from version {first[0]} on (%{new.outputs[0].name})",
            new.name,
        )
    if first[0] > newest:
        raise Error(
            "IRC351",
            f"{first[2].kind} is bound to version {first[0]}, but the installed onnx knows no operator set of "
            f"{domain or 'ai.onnx'} after {newest}",
            f"%{first[2].outputs[0].name}",
        )
    if wanted is None:
        wanted = DEFAULT if domain == "" else known or 1
    return min(max(wanted, first[0]), last[1], newest)
