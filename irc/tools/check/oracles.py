"""Oracles, which tell what a model computes: ONNX Runtime, onnx.reference where it is right, irc without any pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from irc.compiler import load_module
from irc.errors import Error
from irc.ir import Graph, Module
from irc.ir.clone import module_of
from irc.ir.types import DType
from irc.runtime.model import CompiledModel
from irc.tools.check import peers
from irc.tools.check.peers import Unable

if TYPE_CHECKING:
    from onnx import ModelProto

Feeds = Mapping[str, Any]


@dataclass(frozen=True)
class Oracle:
    """Another way to compute a model.

    Attributes:
        name: what to call it.
        values: names that `run` may be asked for: values of the top level, intermediate ones included.
        run: the values of these names; the second argument has values by name that the readers of some values get
            instead of what the model computes. Raises `Unable`, or `Error` if it is irc itself.
    """

    name: str
    values: Collection[str]
    run: Callable[[Feeds, Sequence[str], Feeds], dict[str, Any]]


def oracles(source: Any) -> Iterator[Oracle]:
    """The oracles for what ``irc.compile`` was given, best first; the last one is always irc without passes."""
    if not isinstance(source, Module | Graph):
        proto, folder = peers.read(source)
        yield oracle_of(peers.ONNX_RUNTIME, peers.exact_onnxruntime, proto, folder)
        yield oracle_of(peers.REFERENCE, peers.reference, proto, folder)
    yield unoptimised(source)


class Answer(NamedTuple):
    """What an oracle computes.

    Attributes:
        oracle: the first one that can run the model.
        expected: for each set of inputs, the values asked for by name.
        unable: the oracles before it, and why they could not run it.
    """

    oracle: Oracle
    expected: list[dict[str, Any]]
    unable: dict[str, str]


def ask(source: Any, feeds: Sequence[Feeds], names: Sequence[str]) -> Answer:
    """What the values called ``names`` of the model ``source`` should be for each of ``feeds``."""
    unable: dict[str, str] = {}
    for oracle in oracles(source):
        try:
            return Answer(oracle, [oracle.run(feed, names, {}) for feed in feeds], unable)
        except Unable as refusal:
            unable[oracle.name] = str(refusal)
    raise AssertionError("irc without passes is an oracle for every model")


def values_of(graph: Graph, feeds: Feeds, names: Sequence[str], instead: Feeds | None = None) -> dict[str, Any]:
    """Run ``graph`` and return values of its top block by name, intermediate ones included.

    Readers of the values named in ``instead`` are given the arrays there.

    Raises:
        Error: IRC411 there is no value of one of ``names``; others as of a run.
    """
    module = module_of(graph)
    copy = module.main
    given: dict[str, Any] = {}
    for name, array in (instead or {}).items():
        made = copy.value(name)
        read = copy.add_input(made.type)
        made.replace_all_uses_with(read)
        given[read.name] = array
    for name in names:
        if not copy.has_value(name):
            raise Error("IRC411", f"there is no value {name!r}: give what the model was compiled from", graph.name)
    copy.set_outputs([copy.value(n) for n in names])
    return CompiledModel(module).run({**feeds, **given})


def unoptimised(source: Any) -> Oracle:
    """Irc's own plan of what ``irc.compile`` was given, without any pass."""
    module, _ = load_module(source)
    values = [value.name for node in module.main.nodes for value in node.outputs]
    return Oracle("irc without passes", values, partial(values_of, module.main))


# -- others --------------------------------------------------------------------


def _values(proto: ModelProto) -> Collection[str]:
    return frozenset(name for node in proto.graph.node for name in node.output)


def oracle_of(name: str, peer: peers.Peer, proto: ModelProto, folder: str) -> Oracle:
    """The oracle called ``name`` that computes a model by another runtime."""
    ready: dict[tuple[tuple[str, ...], ...], peers.Runner] = {}

    def run(feeds: Feeds, names: Sequence[str], instead: Feeds) -> dict[str, Any]:
        key = (tuple(names), tuple(instead))
        if key not in ready:
            ready.clear()  # each has the weights
            ready[key] = peer(_changed(proto, names, instead), folder)
        made = [_made(name) if name in instead else name for name in names]
        return dict(zip(names, ready[key]({**feeds, **instead}, made), strict=True))

    return Oracle(name, _values(proto), run)


def _changed(proto: ModelProto, names: Sequence[str], instead: Feeds) -> ModelProto:
    """A copy of ``proto`` that also returns the intermediate values ``names`` and is given those of ``instead``."""
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    graph = copy.graph
    for node in graph.node if instead else ():
        node.output[:] = [_made(name) if name in instead else name for name in node.output]
    for name, array in instead.items():
        graph.input.append(onnx.helper.make_tensor_value_info(name, DType.from_numpy(array.dtype).onnx, array.shape))
    present = {output.name for output in graph.output}
    wanted = (_made(name) if name in instead else name for name in names)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted if name not in present)
    return copy


def _made(name: str) -> str:
    """The name of the value that the model itself computes where readers are given another."""
    return f"{name}, as it is made"
