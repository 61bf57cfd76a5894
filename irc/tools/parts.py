"""`irc.extract`: a part of a model as a module, or as a file with the nodes of the model's file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from irc.frontend.onnx.files import Source, read_file
from irc.frontend.onnx_export.model import Written, save_proto
from irc.frontend.onnx_export.parts import part_of
from irc.frontend.onnx_export.tensors import InFile
from irc.ir import Module
from irc.passes import PassManager
from irc.support.files import real_path
from irc.tools.extract import extract as extract_module
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
    return extract_module(typed(module_in(model)[0]), inputs, outputs)


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
