"""Making a module of whatever `irc.compile` is given."""

from __future__ import annotations

import os
from typing import Any, cast

from irc.errors import Error
from irc.ir import Graph, Module
from irc.ir.clone import module_of
from irc.ops.opaque import opaque_operators
from irc.runtime.file import is_saved
from irc.runtime.model import CompiledModel
from irc.wording import count


def load_module(model: Any, refuse_unknown: bool = False) -> tuple[Module, str]:
    """A module of its own for anything that `compile` takes, and a name for it."""
    if isinstance(model, Module | Graph):
        from irc.frontend.torchscript.outs import copy_into_outs

        module = model.copy() if isinstance(model, Module) else module_of(model)
        if refuse_unknown:
            refuse_opaque(module)
        copy_into_outs(module)
        return module, module.main.name
    if any(base.__module__.partition(".")[0] == "torch" for base in type(model).__mro__):
        from irc.frontend.torchscript import import_torchscript

        return import_torchscript(model), type(model).__name__
    if isinstance(model, CompiledModel):
        raise Error("IRC101", "this is compiled already: run it, or compile its module", model.graph.name)
    from irc.frontend.onnx import import_model  # imports onnx, which irc graphs and .irc files do not need

    if isinstance(model, str | os.PathLike):
        path = os.fspath(cast("str | os.PathLike[str]", model))
        _check_not_irc(path)
        return import_model(path, refuse_unknown=refuse_unknown), path
    if hasattr(model, "graph"):
        return import_model(model, refuse_unknown=refuse_unknown), str(model.graph.name)
    kind = type(model).__name__
    raise Error("IRC101", f"cannot compile a {kind}: give a path, ModelProto, torch.jit module, Module or Graph")


def refuse_opaque(module: Module, where: str = "") -> None:
    """Raise IRC123 if ``module`` has nodes whose operators irc does not know, and only passes through."""
    found = opaque_operators(*module.graphs.values())
    if found:
        lines = [f"  {operator}, {count(len(nodes), 'node')}" for operator, nodes in found.items()]
        raise Error("IRC123", "\n".join([f"{count(len(found), 'operator')} that irc does not know:", *lines]), where)


def _check_not_irc(path: str) -> None:
    """IRC101 for irc's own files: reading them as ONNX would report them as damaged."""
    if not os.path.isfile(path):
        return  # reading it says why
    if os.path.splitext(path)[1].lower() in (".ir", ".txt"):
        raise Error("IRC101", "this is IR text: give compile what irc.ir.parse_module makes of it", path)
    if is_saved(path):
        raise Error("IRC101", "this is compiled already: irc.load reads it", path)
