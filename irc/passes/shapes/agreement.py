"""Whether the types that a module states agree with those that inference finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.errors import Error
from irc.ir.types import TensorType
from irc.ir.verify.diagnostics import node_error
from irc.ir.verify.type_relation import accepts
from irc.passes.shapes.infer import Inference

if TYPE_CHECKING:
    from irc.ir import Graph, Module


def contradiction(module: Module) -> Error | None:
    """The first contradiction between types in ``module``, which is not changed; None if there is none.

    It is an IRC310 if a node cannot run on what it is given, so that other runtimes refuse to load the model; an IRC214
    if a value is said to have another element type or shape than its node gives it.
    """
    copy = module.copy()  # inference gives values their types
    for name, graph in copy.graphs.items():
        try:
            Inference(graph).run()
        except Error as error:
            return error if error.code == "IRC310" else None
        found = _contradiction(module.graphs[name], graph)
        if found is not None:
            return found
    return None


def _contradiction(stated: Graph, inferred: Graph) -> Error | None:
    for node, other in zip(stated.walk(), inferred.walk(), strict=True):
        for i, (value, found) in enumerate(zip(node.outputs, other.outputs, strict=True)):
            said, is_type = value.type, found.type
            if isinstance(said, TensorType) and isinstance(is_type, TensorType) and not accepts(said, is_type):
                return node_error("IRC214", f"%{value.name} is said to be {said}, but it is {is_type}", node, output=i)
    return None
