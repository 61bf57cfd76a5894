"""What each node of a model means: an operator at one version, or a local function.

All operators that are missing are reported in one error, before anything is
built. A local function takes precedence over an operator of the same name, which the
specification leaves to the runtime.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from irc.errors import Error
from irc.frontend.onnx.checks import text, texts
from irc.frontend.onnx.opsets import bind, is_standard, opaque, read_imports
from irc.frontend.onnx.scan import RawFunction, RawGraph, RawNode, scan_function

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto

Functions = dict[tuple[str, str, str], RawFunction]
"""Local functions by (domain, name, overload)."""

Missing = dict[tuple[str, str, int, str], tuple[int, str]]
"""(domain, operator, opset, reason) -> (nodes, the first one)."""


def read_functions(protos: Iterable[FunctionProto]) -> Functions:
    """The local functions of a model, bodies not read yet. Raises IRC122, IRC132."""
    found: Functions = {}
    for proto in protos:
        key = _key(*texts((proto.domain, proto.name, proto.overload), "a local function"))
        where = f"function {'::'.join(filter(None, key))}"
        attributes: dict[str, AttributeProto | None] = dict.fromkeys(texts(proto.attribute, where))
        attributes.update({text(default.name, where): default for default in proto.attribute_proto})
        function = RawFunction(proto, key, RawGraph(""), {}, attributes)
        function.graph.where = f"function {function.label}"
        if not proto.name:
            raise Error("IRC132", "a local function has no name")
        if key in found:
            raise Error("IRC132", "two local functions have this name", function.graph.where)
        found[key] = function
    return found


def _key(domain: str, name: str, overload: str) -> tuple[str, str, str]:
    return ("" if is_standard(domain) else domain, name, overload)


def resolve(main: RawGraph, imports: dict[str, int], functions: Functions, refuse_unknown: bool = True) -> None:
    """Set the target of every node that can be reached. Raises IRC123, IRC132 and what ``scan_function`` raises.

    Args:
        main: the graph.
        imports: its opset imports.
        functions: what its nodes may call.
        refuse_unknown: whether operators that irc does not know are missing; else their nodes become opaque. Those
            whose domain is not imported are missing anyhow: the model is wrong.
    """
    missing: Missing = {}
    calls: dict[RawFunction | None, list[tuple[RawFunction, str]]] = {}
    calls[None] = _resolve_graph(main, imports, functions, missing, "", refuse_unknown)
    pending = [function for function, _ in calls[None]]
    while pending:
        function = pending.pop()
        if function in calls:
            continue
        where = function.graph.where
        function.imports = read_imports(function.proto.opset_import, where) if function.proto.opset_import else {}
        scan_function(function.proto, function.graph)
        calls[function] = _resolve_graph(function.graph, function.imports, functions, missing, where, refuse_unknown)
        pending += [called for called, _ in calls[function]]
    if missing:
        raise Error("IRC123", _describe(missing))
    _refuse_recursion(calls)


def _resolve_graph(
    graph: RawGraph,
    imports: dict[str, int],
    functions: Functions,
    missing: Missing,
    where: str,
    refuse_unknown: bool,
) -> list[tuple[RawFunction, str]]:
    """Set the targets of a graph's nodes and add to what is missing. Returns the functions called, and in which nodes.

    ``where``: the function that the graph is of; "" for a model's graph.
    """
    called: dict[RawFunction, str] = {}
    for node in graph.walk():
        if node.target is not None:
            continue
        if functions:
            function = functions.get(_key(node.domain, node.op_type, text(node.proto.overload, node)))
            if function is not None:
                node.target = function
                _drop_notes(node, function.attributes)
                called.setdefault(function, str(node))
                continue
        found = bind(node.domain, node.op_type, imports, where)
        if isinstance(found, str) and not refuse_unknown:
            found = opaque(node.domain, node.op_type, imports) or found
        if isinstance(found, str):
            domain = "ai.onnx" if is_standard(node.domain) else node.domain
            opset = imports.get("" if is_standard(node.domain) else node.domain, 0)
            key = (domain, node.op_type, opset, found)
            count, first = missing.get(key, (0, str(node)))
            missing[key] = (count + 1, first)
        else:
            node.target = found
            if found.attributes is not None:
                _drop_notes(node, found.attributes, found.is_lenient)
    return list(called.items())


def _drop_notes(node: RawNode, known: Collection[str], all_others: bool = False) -> None:
    """Drop attributes that are exporters' notes: those whose names begin as the ONNX checker expects of notes.

    With ``all_others``, all that are not known.
    """
    names = [text(attribute.name, node) for attribute in node.attributes]
    notes = {name for name in names if name not in known and (all_others or name.startswith("__"))}
    if notes:
        node.attributes = [a for name, a in zip(names, node.attributes) if name not in notes]
        node.graphs = {name: graph for name, graph in node.graphs.items() if name not in notes}


def _describe(missing: Missing) -> str:
    lines = [f"{len(missing)} operator{'s are' if len(missing) > 1 else ' is'} not supported:"]
    for (domain, op_type, opset, reason), (count, first) in sorted(missing.items()):
        version = f"opset {opset}" if opset else "not imported"
        lines.append(
            f"  {op_type} (domain {domain}, {version}), {count} node{'s' * (count > 1)}, first {first}: {reason}"
        )
    return "\n".join(lines)


def _refuse_recursion(calls: dict[RawFunction | None, list[tuple[RawFunction, str]]]) -> None:
    """Raise IRC132 if a function calls itself, directly or by others. Depth-first search, without recursion."""
    done: set[RawFunction] = set()
    path: dict[RawFunction, None] = {}
    stack = [iter(calls[None])]
    while stack:
        function, where = next(stack[-1], (None, ""))
        if function is None:
            stack.pop()
            if path:
                done.add(path.popitem()[0])
        elif function in path:
            cycle = [*path][[*path].index(function) :]
            names = " -> ".join(f.label for f in [*cycle[:8], function])
            raise Error("IRC132", f"local functions must not call themselves: {names}", where)
        elif function not in done:
            path[function] = None
            stack.append(iter(calls[function]))
