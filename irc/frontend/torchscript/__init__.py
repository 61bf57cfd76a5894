"""TorchScript to modules: IR text, and live ``torch.jit`` objects where torch is installed.

Errors are ``irc.Error`` with one of these codes:

=======  ===================================================================
IRC110   to IRC114: the text is not well formed (file, line, column, caret)
IRC210   to IRC217: the graph is not: an operator has a wrong number of inputs
IRC140   what is given is not a TorchScript
IRC141   attributes that the graph reads, and nobody gives a value for
IRC142   an attribute that irc cannot hold
IRC143   a tensor that irc cannot hold
=======  ===================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from irc.frontend.torchscript.attributes import Read, bind_attributes
from irc.ir import Builder, Graph, Module, Node, Schema, Value, is_none, parse_module, with_subgraphs
from irc.ir.types import BOOL, INT, TENSOR, ClassType, TensorType, Type
from irc.ir.verify.verifier import verify
from irc.ops import record, resolve, schemas
from irc.ops.signatures import takes

__all__ = ["import_torchscript"]

_WITHOUT_EFFECT = ("__torch__.torch.autograd.grad_mode.", "__torch__.torch.autograd.profiler.record_function")
"""Contexts that change nothing here: there are no gradients, and irc has a profile of its own."""


def import_torchscript(
    source: Any, weights: Mapping[str, Any] | None = None, *, training: bool = False, filename: str = "<text>"
) -> Module:
    """The module of a TorchScript graph.

    Attributes that the graph reads from ``self`` (``prim::GetAttr``) are
    known to the module by their paths, such as ``"stem.0.weight"``. Two
    attributes that are one piece of memory stay one. The pass ``freeze``
    makes constants of those that nothing changes.

    Inputs of modules and functions are called as there. In text and graphs they lose the ``.1`` that TorchScript
    appends to their names where that leaves inputs and results different. A result without a name of its own is
    called ``output`` if it is the first and nothing else of these is.
    ``with torch.no_grad():`` and its like, and ``record_function``, leave nothing behind. Traced modules and functions
    take inputs of any size: of what a trace says of its example's shapes, element types and ranks of inputs are kept.
    Inputs that have default values in Python have them here.
    (Text and bare graphs count as they stand.)

    Args:
        source: IR text; or a ``torch.jit.ScriptModule`` (its ``forward``, of overloads the first, methods inlined), a
            ``torch.jit.ScriptFunction`` or a ``torch._C.Graph``. Tensors of live modules are copied.
        weights: attribute path -> array, tensor or Python value, for text and bare graphs; also what ``@"name"``
            in text refers to. Without it, the graph is imported as it stands, for analysis.
        training: what attributes called ``training`` are that ``weights`` does not give.
        filename: what errors call the text.

    Raises:
        irc.Error: see above.
    """
    read = None if weights is None else _reader(weights, training)
    defaults: dict[Value, Any] = {}
    if isinstance(source, str):
        module = _parse(source, weights or {}, filename)
    else:
        from irc.frontend.torchscript.live import defaults_of, graph_of, is_graph, module_of, names_of, reader_of

        graph, script = graph_of(source)
        module = module_of(graph, filename, of_example=not is_graph(source))
        inputs = module.main.inputs
        for value, name in zip(inputs, names_of(source)):
            value.name = name
        defaults = {inputs[i]: value for i, value in defaults_of(source).items()}
        if script is not None:
            read = reader_of(script)
    for graph in module.graphs.values():
        verify(graph, operators=False)
    _forget_contexts(module.main)
    if read is not None:
        bind_attributes(module, read)
    _name_interface(module)
    module.defaults.update((value.name, default) for value, default in defaults.items())
    return module


def _parse(text: str, weights: Mapping[str, Any], filename: str) -> Module:
    module = parse_module(text, filename=filename)
    named = {name: weights[name] for name in module.weights if name in weights}
    if named:
        module = parse_module(text, named, filename)
    copy_into_outs(module)
    return module


def _reader(weights: Mapping[str, Any], training: bool) -> Read:
    def read(path: tuple[str, ...], type: Type) -> Any:
        dotted = ".".join(path)
        if dotted not in weights and path[-1] == "training" and type == BOOL:
            return training
        return weights[dotted]

    return read


def _forget_contexts(graph: Graph) -> None:
    """Remove entry and exit of ``with torch.no_grad():``, similar contexts and ``record_function``."""
    for node in list(graph.walk()):
        if node.kind in ("prim::Enter", "prim::Exit") and not any(v.has_uses for v in node.outputs):
            (context,) = node.inputs
            if isinstance(context.type, ClassType) and context.type.name.startswith(_WITHOUT_EFFECT):
                node.erase()


def _name_interface(module: Module) -> None:
    """Name inputs and results as a caller would write them, different from all other names."""
    graph = module.main
    results = [value for value in graph.outputs if value.node is not None]
    taken = {value.name for value in (*graph.inputs, *results)}
    stems = {value: _stem(value.name) for value in graph.inputs}
    uses = Counter(stems.values())
    for value, stem in stems.items():
        if uses[stem] == 1 and stem not in taken:
            if value.name in module.objects:
                module.objects[stem] = module.objects.pop(value.name)
            value.name = stem
            taken.add(stem)
    for value in results:
        if value.name.isdecimal() and "output" not in taken:
            value.name = "output"
            taken.add("output")


def _stem(name: str) -> str:
    stem, _, number = name.rpartition(".")
    return stem if stem and number.isdecimal() else name


# Overloads of operators that write their result into a tensor given as ``out=``.
#
# Each becomes the operator without ``out=``, followed by ``irc::overwrite_``: otherwise a thousand more schema rows,
# and all code that depends on kinds, would have to cover them. PyTorch would resize a tensor that does not fit; irc
# refuses it at run time.


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
    """Add options that an operator with ``out`` lacks, so that a schema row takes all arguments."""
    for row in schemas(node.kind):
        options = [a for a in row.arguments if a.keyword_only]
        if _how(row) == "dtype" and len(node.inputs) == len(row.arguments) - len(options):
            none = Builder.before(node).constant()
            for _ in options:
                node.append_input(none)
            return


def _how(row: Schema) -> str | None:
    """How ``row`` treats a tensor given as ``out=``: the tag ``out``, see `irc.ops.record`."""
    return record(row.name).out.get(f"{row.name}.{row.overload}".removesuffix("."))
