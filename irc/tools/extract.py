"""`irc.extract`: the part of a model between some of its values, as a module or a file of its own."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Sequence
from typing import Any

from irc.alias import analyze
from irc.alias.motion import backward_slice
from irc.errors import Error, did_you_mean
from irc.frontend.onnx.files import Source, read_file
from irc.frontend.onnx_export.model import Written, save_proto
from irc.frontend.onnx_export.parts import part_of
from irc.frontend.onnx_export.tensors import InFile
from irc.ir import Graph, Module, Node, Value
from irc.ir.clone import ValueMap, clone_node, copy_graph
from irc.ir.declarations import OUTPUT_TYPE
from irc.ir.region_flow import function_name, with_subgraphs
from irc.passes import PassManager
from irc.support.files import real_path
from irc.support.formatting import first_of
from irc.tools.inspection import module_in


def extract(model: Any, inputs: Iterable[str] | None, outputs: Iterable[str]) -> Module:
    """The part of a model that computes ``outputs`` from ``inputs``: a module, which `irc.export` writes.

    Args:
        model: what `irc.compile` takes, what it gives, or the path of a ``.irc`` file; it is not changed.
        inputs: names of values that the part is given, results of nodes among them. None: the inputs of the model that
            the outputs need.
        outputs: names of the values that it returns.

    Raises:
        Error: IRC360 there is no such value, or they do not lead to each other; IRC1xx the model cannot be imported.
    """
    return cut_out(typed(module_in(model)[0]), inputs, outputs)


def extract_file(
    path: str, inputs: Iterable[str] | None, outputs: Iterable[str], target: str, external_threshold: int | None = None
) -> Written:
    """Write a part of an ONNX file to another file, with nodes, names, types and metadata as they are.

    Weights of ``external_threshold`` bytes or more go into ``<target>.data``; None: all from 1 KB on, but only if the
    message would exceed 2 GB. Those that the file holds in other forms than raw bytes stay. The files appear when they
    are complete.

    Raises:
        Error: as `extract`; IRC501 a file cannot be written, IRC503 the model is read from it.
    """
    return write_part(read_file(path), extract(path, inputs, outputs), target, external_threshold)


def write_part(source: Source, part: Module, target: str, external_threshold: int | None = None) -> Written:
    """Write ``part``, which was extracted from the module of ``source``, as `extract_file` does."""
    weights = InFile(f"{os.path.basename(real_path(target))}.data", external_threshold)
    takes, gives = ({value.name: value.type for value in values} for values in (part.main.inputs, part.main.outputs))
    return save_proto(part_of(source, takes, gives, weights), weights, target, part.sources)


def typed(module: Module) -> Module:
    """A copy with all types that can be inferred, through calls too: what becomes an input has no other."""
    copy, whole = module.copy(), module.copy()
    PassManager("inline,shape-inference").run(whole)
    for node in copy.main.nodes:
        for value in node.outputs:
            if whole.main.has_value(value.name):
                value.type = whole.main.value(value.name).type
    return copy


# -- parts of modules ------------------------------------------------------------


def cut_out(
    module: Module, inputs: Iterable[str] | None, outputs: Iterable[str], *, only_needed: bool = False
) -> Module:
    """A module that computes ``outputs`` from ``inputs``, values of the main graph of ``module``.

    It has the nodes that the outputs need, those that write into memory on the way, the functions that these call, and
    the weights that they use. Names and types are kept.

    Args:
        module: the model, which is not changed.
        inputs: names of values that the part is given, results of nodes among them; in this order, they are its inputs.
            None: the inputs of the model that the outputs need.
        outputs: names of the values that it returns, in order.
        only_needed: whether inputs that lead to no output are left out, instead of refused.

    Raises:
        Error: IRC360 there is no value of such a name, it is inside of a nested block, or is given twice; an input
            leads to no output, or an output needs inputs of the model that are not given; something writes into a
            result where the model would be cut.
    """
    graph = module.main
    results = _values(graph, outputs, "output")
    if not results:
        raise Error("IRC360", "name at least one value that the part returns", graph.name)
    db = analyze(graph, module)
    given = None if inputs is None else _values(graph, inputs, "input")
    cuts = set(graph.inputs if given is None else given)
    nodes, reached = backward_slice(db, results, cuts)
    of_model = (
        graph.inputs if given is None else [v for v in graph.inputs if v.name in module.objects and v not in cuts]
    )
    given = [value for value in of_model if value in reached] + (given or [])
    for value in given:
        if value.node is not None and db.has_writers(value):
            writer = next((node.kind for node in db.writers(value)), "a node")
            message = f"%{value.name} cannot be an input: {writer} writes into its memory, which others may share"
            raise Error("IRC360", message, graph.name)
    missing = [value for value in graph.inputs if value in reached and value not in given]
    if missing:
        names = first_of(len(missing), "input", f"%{missing[0].name}")
        message = f"the outputs also need what is computed from {names} of the model: name these, or values after them"
        raise Error("IRC360", message, graph.name)
    unused = [value for value in given if value not in reached]
    given = [value for value in given if value in reached]
    if unused and not only_needed:
        message = f"no output needs %{unused[0].name}: it does not lead to {_listed(results)}"
        raise Error("IRC360", message, graph.name)
    return assemble(module, given, nodes, results)


def _values(graph: Graph, names: Iterable[str], what: str) -> list[Value]:
    """The values called ``names``, each a different one of the top block; Error IRC360 if one is not."""
    found: dict[Value, None] = {}
    for name in names:
        if not graph.has_value(name):
            known = [value.name for value in graph.values()]
            hint = did_you_mean(name, known) or "irc print shows all"
            raise Error("IRC360", f"there is no value {name!r} to be an {what}: {hint}", graph.name)
        value = graph.value(name)
        if value.block is not graph.block:
            around = value.block.node.kind if value.block is not None and value.block.node is not None else "a node"
            message = f"%{name} is inside of {around}: only values of the top level can be {what}s"
            raise Error("IRC360", message, graph.name)
        if value in found:
            raise Error("IRC360", f"%{name} is named twice as an {what}", graph.name)
        found[value] = None
    return list(found)


def assemble(module: Module, inputs: Sequence[Value], nodes: Container[Node], outputs: Sequence[Value]) -> Module:
    """A module of copies of ``nodes`` of ``module``, with the functions and weights that they use."""
    part = Module()
    part.sources = module.sources
    graph: Graph = part.main
    mapping: ValueMap = {}
    graph.name, part.graphs = module.main.name, {module.main.name: graph}
    graph.has_metadata = module.main.has_metadata
    for value in inputs:
        mapping[value] = graph.add_input(value.type, value.name)
        mapping[value].metadata = value.metadata
    for node in module.main.nodes:
        if node not in nodes:
            continue
        # A result that is given is a parameter of that name already; the node makes another one, for its other results.
        known = {value: mapping[value] for value in node.outputs if value in mapping}
        graph.block.append(clone_node(node, graph, mapping))
        mapping.update(known)
    graph.set_outputs([mapping[value] for value in outputs])
    _add_functions(module, part)
    kept = {value.name for value in outputs}
    part.metadata = {
        key: text
        for key, text in module.metadata.items()
        if not key.startswith(OUTPUT_TYPE) or key.removeprefix(OUTPUT_TYPE) in kept
    }
    of_model = {value.name for value in inputs if value.is_param}
    part.defaults = {name: value for name, value in module.defaults.items() if name in of_model}
    part.objects = {name: value for name, value in module.objects.items() if name in of_model}
    return part


def _add_functions(module: Module, part: Module) -> None:
    """Copy the functions of ``module`` that ``part`` reaches, in the module's order."""
    names: set[str] = set()
    graphs = [part.main]
    for graph in graphs:  # grows while it is walked
        found = {function_name(node) or "" for node in with_subgraphs(graph)} & module.graphs.keys() - names
        names |= found
        graphs += [module.graphs[name] for name in found]
    for name in [name for name in module.graphs if name in names and name not in part.graphs]:
        part.graphs[name] = copy_graph(module.graphs[name], part.weights, part)


def _listed(values: Sequence[Value]) -> str:
    shown = ", ".join(f"%{value.name}" for value in values[:3])
    return f"{shown} and {len(values) - 3} more" if len(values) > 3 else shown
