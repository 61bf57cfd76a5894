"""Who says what a model computes: ONNX Runtime, onnx.reference where it is right, irc without any pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from irc.ir import Graph, Module
from irc.loading import load_module
from irc.reasons import reason
from irc.runtime.model import CompiledModel

if TYPE_CHECKING:
    from onnx import ModelProto

Feeds = Mapping[str, Any]


class Unable(Exception):
    """An oracle cannot run a model; says why."""


@dataclass(frozen=True)
class Oracle:
    """Somebody who computes a model in another way.

    Attributes:
        name: what to call it.
        values: names that `run` may be asked for: values of the top level, intermediate ones included.
        run: the values of these names. Raises `Unable`, or `Error` if it is irc itself.
    """

    name: str
    values: Collection[str]
    run: Callable[[Feeds, Sequence[str]], dict[str, Any]]


def oracles(source: Any) -> Iterator[Oracle]:
    """The oracles for what ``irc.compile`` was given, best first; the last one is always irc without passes."""
    if not isinstance(source, Module | Graph):
        proto, folder = _read(source)
        yield _onnxruntime(proto, folder)
        yield _reference(proto, folder)
    yield _unoptimised(source)


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
            return Answer(oracle, [oracle.run(feed, names) for feed in feeds], unable)
        except Unable as refusal:
            unable[oracle.name] = str(refusal)
    raise AssertionError("irc without passes is an oracle for every model")


def values_of(graph: Graph, feeds: Feeds, names: Sequence[str]) -> dict[str, Any]:
    """Run ``graph`` and give values of its top block by name, intermediate ones included."""
    copy = graph.copy()
    module = Module(copy)
    if graph.module is not None:
        module.defaults.update(graph.module.defaults)
        module.graphs.update({n: g for n, g in graph.module.graphs.items() if g is not graph})
    copy.set_outputs([copy.value(n) for n in names])
    return CompiledModel(module).run(feeds)


def _unoptimised(source: Any) -> Oracle:
    module, _ = load_module(source)
    values = [value.name for node in module.main.nodes for value in node.outputs]
    return Oracle("irc without passes", values, lambda feeds, names: values_of(module.main, feeds, names))


# -- others --------------------------------------------------------------------


def _read(source: Any) -> tuple[ModelProto, str]:
    """The model and its folder. irc has read it before, so it is one."""
    import onnx

    if isinstance(source, onnx.ModelProto):
        return source, ""
    path = Path(source)
    proto = onnx.ModelProto()
    proto.ParseFromString(path.read_bytes())
    return proto, str(path.absolute().parent)


def _values(proto: ModelProto) -> Collection[str]:
    return frozenset(name for node in proto.graph.node for name in node.output)


def _with_outputs(proto: ModelProto, names: Sequence[str]) -> ModelProto:
    """A copy of ``proto`` that also gives the intermediate values ``names``."""
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    present = {o.name for o in copy.graph.output}
    copy.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in present)
    return copy


def _foreign(action: Callable[[], Any]) -> Any:
    """What ``action`` gives; whatever another library raises, and each has classes of its own, is `Unable`."""
    try:
        return action()
    except Exception as error:
        raise Unable(reason(error)) from error


def _onnxruntime(proto: ModelProto, folder: str) -> Oracle:
    sessions: dict[tuple[str, ...], Any] = {}

    def session(names: Sequence[str]) -> Any:
        import onnxruntime

        runtime: Any = onnxruntime  # it ships no types
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        if folder:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        model = _with_outputs(proto, names).SerializeToString()
        return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def run(feeds: Feeds, names: Sequence[str]) -> dict[str, Any]:
        key = tuple(names)
        if key not in sessions:
            sessions.clear()  # each has the weights
            sessions[key] = _foreign(lambda: session(names))
        return dict(zip(names, _foreign(lambda: sessions[key].run(list(names), dict(feeds))), strict=True))

    return Oracle("ONNX Runtime", _values(proto), run)


FIRST_RIGHT_OPSET = 14
"""Below, onnx.reference computes old versions of many operators (BatchNormalization, Softmax...) as newer ones."""

WRONG_IN_REFERENCE = frozenset(["LRN", "LinearClassifier", "TreeEnsembleClassifier"])
"""Operators that onnx.reference may compute wrong in every version: LRN sums over the batch, classifiers choose a class
before they transform the scores."""


def _reference(proto: ModelProto, folder: str) -> Oracle:
    def load() -> ModelProto:
        from onnx.external_data_helper import load_external_data_for_model

        copy = _with_outputs(proto, [])
        if folder:
            load_external_data_for_model(copy, folder)
        return copy

    def run(feeds: Feeds, names: Sequence[str]) -> dict[str, Any]:
        from onnx.reference import ReferenceEvaluator

        _check_reference_is_right(proto)
        evaluator: Any = _foreign(lambda: ReferenceEvaluator(_with_outputs(load(), names)))
        return dict(zip(names, _foreign(lambda: evaluator.run(list(names), dict(feeds))), strict=True))

    return Oracle("onnx.reference", _values(proto), run)


def _check_reference_is_right(proto: ModelProto) -> None:
    from onnx import defs

    opsets = {o.domain: o.version for o in proto.opset_import}
    opset = max(opsets.get("", 0), opsets.get("ai.onnx", 0))
    if opset < FIRST_RIGHT_OPSET:
        raise Unable(f"it is not right for opset {opset}")
    for node in proto.graph.node:
        if node.op_type in WRONG_IN_REFERENCE or not defs.has(node.op_type, node.domain):
            raise Unable(f"it is not known to be right for {node.op_type}")
