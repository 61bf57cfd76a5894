"""`irc.export`: from a compiled model, a module or a graph to an ONNX file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from irc.errors import Error
from irc.ir import Graph, Module
from irc.ir.clone import module_of, verify_given
from irc.runtime.model import CompiledModel

if TYPE_CHECKING:
    from irc.frontend.onnx_export.written import Written


def export(
    model: CompiledModel | Module | Graph, path: str | os.PathLike[str], *, external_threshold: int | None = None
) -> int:
    """Write a model as ONNX, whole or not at all, for any other runtime: what ``irc compile -o OUT.onnx`` does.

    Args:
        model: what `irc.compile` or `irc.load` returns, an ``irc.ir.Module`` or an ``irc.ir.Graph``. It is not changed.
        path: where to.
        external_threshold: weights of that many bytes or more go into ``<path>.data``; None: all from 1 KB on, but only
            if the model would be too large for one file.

    Returns:
        How many bytes the files have together.

    Raises:
        Error: IRC101 ``model`` cannot be exported; IRC2xx the graph breaks a rule of the IR; IRC350, IRC351
            ONNX cannot express it; IRC352 it is too large for a message; IRC501 a file cannot be written; IRC503 the
            name ends in ``.irc``, or is that of a file which the model is read from.
    """
    return write_onnx(model, path, external_threshold).bytes


def write_onnx(
    model: CompiledModel | Module | Graph, path: str | os.PathLike[str], external_threshold: int | None = None
) -> Written:
    """As `export`; returns what was written."""
    from irc.frontend.onnx_export import save_model  # imports onnx, which .irc files do not need

    where = os.fsdecode(path)
    if where.lower().endswith(".irc"):
        raise Error("IRC503", "this is the name of a compiled model: model.save(path) writes one", where)
    if isinstance(model, CompiledModel):
        verify_given(model.graph)
        module = model.module if model.graph is model.module.main else module_of(model.graph)
    elif isinstance(model, Module | Graph):  # type: ignore[reportUnnecessaryIsInstance]  # callers may not be typed
        verify_given(model)
        module = model if isinstance(model, Module) else module_of(model)
    else:
        raise Error("IRC101", f"cannot export a {type(model).__name__}: give a compiled model, a Module or a Graph")
    return save_model(module, where, external_threshold)
