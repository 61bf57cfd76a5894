"""From node to kernel: those of `irc.runtime.kernels`, and in-place variants made from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

from irc.errors import Error, comes_from_outside
from irc.ir import IF, Graph, Node, TensorType
from irc.ir.region_flow import function_name, inner_graph
from irc.ops import record, schemas
from irc.ops.opaque import is_opaque, opaque_operator
from irc.ops.plugins import is_foreign
from irc.ops.pointwise import result_like
from irc.runtime import kernels
from irc.runtime.arguments import checked
from irc.runtime.kernels.registry import Binder, Kernel, find_binder, takes_out
from irc.runtime.values import Array
from irc.support.formatting import first_of


def functional(node: Node) -> Node | None:
    """``onnx::Relu`` for ``onnx::Relu_``: every pointwise ONNX operator has an in-place variant.

    It is only for binders to look at: the graph does not have it, and its operands do not count it among their users.
    """
    if not node.kind.endswith("_") or not node.kind.startswith("onnx::"):
        return None
    functional_node = copy(node)
    functional_node.kind = node.kind[:-1]
    return functional_node


def bind(node: Node) -> Kernel:
    """The kernel that computes ``node``.

    Raises:
        Error: IRC321 if there is none; others if an attribute has a value that the kernel refuses.
    """
    functional_node = functional(node)
    kernel = kernels.bind(functional_node or node)
    if functional_node is not None:
        if not can_overwrite(functional_node.kind, kernel):
            raise Error("IRC322", f"{functional_node.kind} cannot run in place")
        kernel = _writing_first(kernel, result_like(functional_node.kind))
    binder = binder_of_others(node)
    return kernel if binder is None else checked(kernel, node, binder, can_overwrite(node.kind, kernel))


def binder_of_others(node: Node) -> Binder | None:
    """The binder that another package has registered for ``node``, if that is the one in effect."""
    binder = find_binder((functional(node) or node).kind, node.version)
    return binder if binder is not None and is_foreign(binder) else None


def interrupts(error: Exception, node: Node) -> bool:
    """Whether ``error`` was not caused by ``node`` but interrupted it. Foreign kernels may raise anything."""
    return comes_from_outside(error) and binder_of_others(node) is None


def writes_over(node: Node) -> bool:
    """Whether ``node``, in-place such as ``onnx::Add_``, always writes its result over its first input."""
    kind = node.kind
    if not kind.endswith("_") or kind.endswith("__") or not node.inputs:
        return False
    return isinstance(node.inputs[0].type, TensorType) and any(
        len(row.returns) == 1 and row.returns[0].alias is not None and row.returns[0].alias.write
        for row in schemas(kind)
    )


def can_overwrite(kind: str, kernel: Kernel) -> bool:
    """Whether ``kernel`` of an operator ``kind`` can write its result over one of its inputs, as ``out=``."""
    return record(kind).pointwise and takes_out(kernel)


def fits(out: Array, inputs: Sequence[Any], like: int | None) -> bool:
    """Whether the result of a pointwise operator on ``inputs`` has the element type and shape of ``out``.

    Args:
        out: one of the inputs.
        inputs: all of them; absent ones are None.
        like: the input whose element type the result has.
    """
    if like is None or out.dtype != inputs[like].dtype or not out.flags.writeable:
        return False
    shape = out.shape
    for x in inputs:
        if x is not None and x.shape != shape:
            extra = x.ndim - len(shape)
            if extra > 0 or any(d not in (1, n) for d, n in zip(x.shape, shape[-extra:] if extra else shape)):
                return False
    return True


def _writing_first(kernel: Kernel, like: int | None) -> Kernel:
    def run(*inputs: Any) -> Any:
        first = inputs[0]
        if like != 0:
            _require_fit(first, inputs, like)
        try:
            return kernel(*inputs, out=first)
        except Exception:  # a result like its first input may only have the wrong shape, which NumPy refuses anyhow
            _require_fit(first, inputs, like)
            raise

    return run


def _require_fit(first: Array, inputs: Sequence[Any], like: int | None) -> None:
    if not fits(first, inputs, like):
        if not first.flags.writeable:
            raise Error("IRC431", "an in-place operator would write into memory that may not be changed")
        raise Error("IRC431", "an in-place operator's result must have its first input's shape and element type")


def may_stay_out(node: Node) -> bool:
    """Whether ``node`` may lack a kernel until a run reaches it: opaque, or in a TorchScript branch."""
    is_torch = node.kind.startswith(("aten::", "prim::"))
    return is_opaque(node.kind) or (is_torch and any(outer.kind == IF for outer in node.around()))


def reachable_nodes(graph: Graph) -> Iterator[Node]:
    """All nodes of ``graph``, of its fusion groups and of the functions that it names, each graph once."""
    pending, seen = [graph], {graph}
    while pending:
        current = pending.pop()
        for node in current.walk():
            yield node
            sub, function = inner_graph(node), function_name(node)
            if function is not None and current.module is not None:
                sub = current.module.graphs.get(function)
            if sub is not None and sub not in seen:
                seen.add(sub)
                pending.append(sub)


def unsupported(nodes: Sequence[Node]) -> Error:
    """One error that lists every operator among ``nodes``: domain, version, count and first node."""
    rows: dict[tuple[str, int | None], list[Node]] = {}
    for node in nodes:
        rows.setdefault((node.kind, node.version), []).append(node)
    lines: list[str] = []
    for (kind, version), users in sorted(rows.items(), key=lambda row: (row[0][0], row[0][1] or 0)):
        namespace, _, operator = kind.rpartition("::")
        domain = "ai.onnx" if namespace == "onnx" else namespace
        if is_opaque(kind):
            domain, operator = opaque_operator(kind)
        first = users[0].name or next((f"%{v.name}" for v in users[0].outputs), "(no name)")
        count = first_of(len(users), "node", first)
        why = kernels.fallback.refusal(functional(users[0]) or users[0])
        lines.append(f"  {operator}: domain {domain or 'ai.onnx'}, version {version or 'newest'}, {count}: {why}")
    plural = "operators" if len(rows) > 1 else "operator"
    return Error("IRC323", f"irc cannot compute {len(rows)} {plural}:\n" + "\n".join(lines))
