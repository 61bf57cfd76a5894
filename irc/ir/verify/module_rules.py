"""Rules of modules: their graphs know them, and what they say of inputs is said of inputs."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnnecessaryIsInstance=false
# What passes may have put into a module is of any class.

from __future__ import annotations

from typing import Any

from irc.errors import Error
from irc.ir.enumerations import EnumMember
from irc.ir.graph import Graph, Module
from irc.ir.objects import Object, Strided
from irc.ir.tensor import Tensor
from irc.ir.verify.attribute_rules import tensor_fault
from irc.ir.verify.type_relation import accepts


def check_module(module: Module) -> None:
    """Check all of ``module`` but its graphs themselves.

    Raises:
        Error: IRC210 graphs, names and tables do not fit together; IRC214 a default value, or an object, is none of its
            input's type; IRC215 metadata, or values in these tables, are of no class that the IR knows.
    """
    main: Any = module.main
    graphs: Any = module.graphs
    if not isinstance(main, Graph) or not isinstance(main.name, str) or graphs.get(main.name) is not main:
        raise Error("IRC210", "the main graph is not among the module's graphs, by its name")
    for name, graph in graphs.items():
        fault = _graph_fault(name, graph, module)
        if fault:
            raise Error("IRC210", f"the module's graph {name!r} {fault}")
    for what in ("metadata", "defaults", "objects"):
        table: Any = getattr(module, what)
        if not isinstance(table, dict):
            raise Error("IRC210", f"the {what} of a module are a dict, not {table!r}")
    for key, text in module.metadata.items():
        if not isinstance(text, str) or not isinstance(key, str):
            raise Error("IRC215", f"metadata are texts, not {key!r}: {text!r}")
    if module.defaults or module.objects:
        _check_inputs(module)


def _graph_fault(name: str, graph: Any, module: Module) -> str:
    """What is wrong with a graph that is entered as ``name``; "" if nothing is."""
    if not isinstance(graph, Graph):
        return f"is {graph!r}"
    if not isinstance(graph.name, str) or graph.name != name:
        return f"is called {graph.name!r} itself"
    if graph.module is not module:
        return "belongs to another module: copy it"
    return "" if graph.weights is module.weights else "has a weight table of its own: graphs of a module share one"


def _check_inputs(module: Module) -> None:
    inputs = {value.name: value for value in module.main.inputs}
    for what, table in (("a default value", module.defaults), ("an object", module.objects)):
        for name, held in table.items():
            if name not in inputs:
                raise Error("IRC210", f"the module has {what} for {name!r}, which is no input")
            fault = _fault(held)
            if fault is not None:
                raise Error("IRC215", f"{what} of input {name!r} {fault}")
            expected = inputs[name].type
            if isinstance(held, Tensor | Object) and not accepts(expected, held.type):
                raise Error("IRC214", f"{what} of input {name!r} is {held.type}, not {expected}")


def _fault(held: Any) -> str | None:
    """What is wrong with a value that a module keeps for an input, or with what it holds; None if nothing is."""
    pending = [held]
    while pending:
        value = pending.pop()
        if isinstance(value, Object):
            pending += value.attributes.values()
        elif isinstance(value, list | tuple) and not isinstance(value, Strided):
            pending += value
        elif isinstance(value, dict):
            pending += [*value.keys(), *value.values()]
        elif isinstance(value, Tensor):
            if (fault := tensor_fault(value)) is not None:
                return fault
        elif value.__class__ not in _PLAIN:
            return f"holds a {value.__class__.__module__}.{value.__class__.__name__}, which a module cannot keep"
    return None


_PLAIN = frozenset([bool, int, float, complex, str, type(None), EnumMember, Strided])
