"""Graphs that PyTorch has made of modules: a scripted YOLOv3's dump, and those of the zoo."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from irc.alias import analyze
from irc.frontend.torchscript import import_torchscript
from irc.frontend.torchscript.attributes import bind_attributes
from irc.frontend.torchscript.live import graph_of, reader_of
from irc.ir import Graph, Value, parse_graph, parse_module
from irc.ir.types import ClassType
from tests.differential.both import Both
from tests.differential.zoo import SCRIPTED, TRACED, scripted, traced

FILE = Path(__file__).parent.parent / "data" / "yolov3_torchscript.ir"


@dataclass(frozen=True)
class Dump:
    """One graph, for which both analyses can be made as often as moves change PyTorch's.

    Attributes:
        alone: of the graph alone, so that irc and PyTorch know the same: attributes may be anything.
        owned: irc knows what the model's attributes are. PyTorch never does, frozen or not.
    """

    alone: Callable[[], Both]
    owned: Callable[[], Both]


# -- the file -------------------------------------------------------------------


def without_classes(graph: Graph) -> dict[Value, Value]:
    """Let inputs take the place of attributes, one of each: PyTorch's parser reads no class types.

    Returns: what was read of an attribute -> the input that took its place.
    """
    inputs: dict[tuple[str, ...], Value] = {}
    found: dict[Value, Value] = {}
    path: dict[Value, tuple[str, ...]] = {v: (v.name,) for v in graph.inputs if isinstance(v.type, ClassType)}
    reads = [n for n in graph.walk() if n.kind == "prim::GetAttr"]
    for node in reads:
        attribute = path[node.output] = (*path[node.inputs[0]], str(node.attributes["name"]))
        if not isinstance(node.output.type, ClassType):
            if attribute not in inputs:
                inputs[attribute] = graph.add_input(node.output.type, ".".join(attribute))
            found[node.output] = inputs[attribute]
            node.output.replace_all_uses_with(inputs[attribute])
    for node in reversed(reads):
        node.erase()
    graph.block.erase_params([value.index for value in graph.inputs if isinstance(value.type, ClassType)])
    return found


def file_alone() -> Both:
    graph = parse_graph(FILE.read_text())
    without_classes(graph)
    return Both(graph)


class _AnyWeights(dict[str, Any]):
    """Memory of its own for whatever is asked for."""

    def __missing__(self, path: str) -> Any:
        return 1 if path.rpartition(".")[2] in ("stride", "no", "na") else np.zeros(1, np.float32)


def file_owned() -> Both:
    text = FILE.read_text()
    module = import_torchscript(text, _AnyWeights())
    both = file_alone()
    lowered = parse_graph(text)
    inputs = {read.name: value.name for read, value in without_classes(lowered).items()}
    both.values = {
        value: both.values[both[inputs.get(value.name, value.name)]]
        for value in module.main.values()
        if value.name in inputs or both.graph.has_value(value.name)
    }
    both.graph, both.db = module.main, analyze(module.main)
    return both


# -- live modules -----------------------------------------------------------------


@cache
def live(name: str, is_traced: bool) -> tuple[Any, Any]:
    """PyTorch's graph of a module of the zoo, and the module."""
    made, inputs = (TRACED if is_traced else SCRIPTED)[name]
    theirs, script = graph_of(traced(made, *copy.deepcopy(inputs)) if is_traced else scripted(made))
    for node in list(theirs.nodes()):
        if node.kind() in ("prim::Enter", "prim::Exit"):  # of torch.no_grad(): irc's front end leaves them out
            node.destroy()
    return theirs, script


def live_alone(name: str, is_traced: bool) -> Both:
    theirs, _ = live(name, is_traced)
    return Both(str(theirs), theirs.copy())


def live_owned(name: str, is_traced: bool) -> Both:
    theirs, script = live(name, is_traced)
    module = parse_module(str(theirs))
    bind_attributes(module, reader_of(script))
    return Both(module.main, theirs.copy())


def _of(name: str, is_traced: bool) -> Dump:
    return Dump(partial(live_alone, name, is_traced), partial(live_owned, name, is_traced))


DUMPS: dict[str, Dump] = {
    "YOLOv3": Dump(file_alone, file_owned),
    **{name: _of(name, False) for name in SCRIPTED},
    **{f"{name}, traced": _of(name, True) for name in TRACED},
}
"""By name. The file was scripted, as are the others unless they are called traced."""
