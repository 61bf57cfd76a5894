"""Whether the types that a module states agree with each other and with inferred ones."""

from __future__ import annotations

from contextlib import suppress

from irc.errors import Error
from irc.ir import Graph, Module, TensorType, Type, Value
from irc.ir.verify.diagnostics import node_error
from irc.ir.verify.type_relation import accepts
from irc.passes.base import PassContext
from irc.passes.inline import Inline
from irc.passes.shapes.infer import Inference


def contradiction(module: Module) -> Error | None:
    """The first contradiction between types in ``module``, which is not changed; None if there is none.

    It is an IRC310 if a node cannot run on what it is given, so that other runtimes refuse to load the model; an IRC214
    if a value is said to have another element type or shape than its node gives it; another IRC2xx if what inference
    finds breaks a rule. Functions are looked at by themselves, and on what they are called with.
    """
    found = _contradiction(module.copy())
    if found is not None or len(module.graphs) == 1:
        return found
    inlined = module.copy()
    with suppress(Error):  # that would make too many nodes
        Inline().run(inlined.main, PassContext(inlined))
    return _contradiction(inlined)


def _contradiction(module: Module) -> Error | None:
    """As `contradiction`; the types of ``module`` become those that are inferred."""
    for graph in module.graphs.values():
        stated = {value: value.type for value in graph.values()}
        try:
            Inference(graph).run()
        except Error as error:
            return error if error.code == "IRC310" else None
        found = _differing(graph, stated)
        if found is not None:
            return found
    try:
        module.verify()
    except Error as error:
        return error
    return None


def _differing(graph: Graph, stated: dict[Value, Type]) -> Error | None:
    """The IRC214 for the first value of ``graph`` that cannot have the type that was ``stated``."""
    for node in graph.walk():
        for i, value in enumerate(node.outputs):
            if not _agree(stated[value], value.type):
                return node_error("IRC214", _words(stated[value], value), node, output=i)
        for value in (param for block in node.blocks for param in block.params):
            if not _agree(stated[value], value.type):
                return node_error("IRC214", _words(stated[value], value), node)
    return None


def _agree(stated: Type, inferred: Type) -> bool:
    """Whether a value may have both types; of containers, only what they contain is inferred."""
    tensors = isinstance(stated, TensorType) and isinstance(inferred, TensorType)
    return not tensors or accepts(stated, inferred)


def _words(stated: Type, value: Value) -> str:
    return f"%{value.name} is said to be {stated}, but it is {value.type}"
