"""Overloads of operators that write their result into a tensor given as ``out=``.

Each becomes the operator without ``out=``, followed by ``irc::overwrite_``: otherwise a thousand more schema rows, and
all code that depends on kinds, would have to cover them. PyTorch would resize a tensor that does not fit; irc refuses
it at run time.
"""

from __future__ import annotations

from irc.ir import Builder, Module, Node
from irc.ir.constants import is_none
from irc.ir.region_flow import with_subgraphs
from irc.ir.schema import Schema
from irc.ir.types import INT, TENSOR, TensorType
from irc.ops import record, resolve, schemas
from irc.ops.resolution import takes


def copy_into_outs(module: Module) -> None:
    """Replace operators with ``out=`` by those without it, and copy their results into ``out``."""
    for node in list(with_subgraphs(*module.graphs.values())):
        if _has_out(node):
            _copy_into_out(node)


def _has_out(node: Node) -> bool:
    """Whether no overload takes all arguments, but one takes all except the last, which is a tensor."""
    if not node.kind.startswith("aten::") or len(node.inputs) < 2 or len(node.outputs) != 1:
        return False
    kinds = [v.type for v in node.inputs]
    if not isinstance(kinds[-1], TensorType) or takes(node.kind, kinds):
        return False
    return may_have_out(node.kind) and takes(node.kind, kinds[:-1])


def may_have_out(kind: str) -> bool:
    """Whether a torch operator has overloads with a single ``out``."""
    if "none" in record(kind).out.values() or (kind.endswith("_") and not kind.endswith("__")):
        return False
    return any([formal.type for formal in row.returns] == [TENSOR] for row in schemas(kind))


def _copy_into_out(node: Node) -> None:
    out = node.inputs[-1]
    node.erase_inputs([len(node.inputs) - 1])
    _complete(node)
    row = resolve(node)
    how = None if row is None else _how(row)
    if row is not None and how == "dtype":
        dtype = next(i for i, argument in enumerate(row.arguments) if argument.name == "dtype")
        if dtype < len(node.inputs) and is_none(node.inputs[dtype]):
            node.replace_input(dtype, Builder.before(node).op("prim::dtype", out, type=INT))
    attributes = {} if how == "any" else {"same_type": True}
    result = node.output
    written = node.graph.create("irc::overwrite_", [out, result], (result.type,), attributes=attributes)
    written.insert_after(node)
    for user in result.users:
        if user is not written:
            user.replace_uses(result, written.output)
    written.output.name = result.name
    result.type = TENSOR  # what was said of it is said of what it becomes


def _complete(node: Node) -> None:
    """Add the options that an operator with ``out`` lacks if it makes tensors, so that a row takes all arguments."""
    for row in schemas(node.kind):
        options = [a for a in row.arguments if a.keyword_only]
        if _how(row) == "dtype" and len(node.inputs) == len(row.arguments) - len(options):
            none = Builder.before(node).constant()
            for _ in options:
                node.append_input(none)
            return


def _how(row: Schema) -> str | None:
    """How ``row`` treats a tensor given as ``out=``: the tag ``out``, see `irc.ops.tags`."""
    return record(row.name).out.get(f"{row.name}.{row.overload}".removesuffix("."))
