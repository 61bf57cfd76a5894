"""Other ways to run an ONNX model: ONNX Runtime and onnx.reference, where they are right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irc.peer_errors import reason

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

Runner = Callable[[dict[str, Any], Sequence[str] | None], Sequence[Any]]
"""From inputs by name to the outputs of these names, or to all. Raises `Unable`."""

Peer = Callable[["ModelProto", str], Runner]
"""Makes a model ready to run; its external data lies in a folder, if that is not empty. Raises `Unable`."""

FIRST_RIGHT_OPSET = 14
"""Below, onnx.reference computes old versions of many operators (BatchNormalization, Softmax...) as newer ones."""

WRONG_IN_REFERENCE = frozenset(["LRN", "LinearClassifier", "TreeEnsemble", "TreeEnsembleClassifier"])
"""Operators that onnx.reference may compute wrong in every version: LRN sums over the batch, classifiers choose a class
before they transform the scores, TreeEnsemble does not transform them."""

REGRESSORS = frozenset(["LinearRegressor", "SVMRegressor", "TreeEnsembleRegressor"])
"""Operators whose scores ONNX Runtime does not transform where there is one target."""

ROUGH_IN_ONNXRUNTIME = frozenset(["DynamicQuantizeLSTM"])
"""Operators of which irc quantizes the weights alone, and ONNX Runtime what they are multiplied with, too, in ranges
that depend on how threads share the samples."""


class Unable(Exception):
    """Another runtime cannot run a model; says why."""


def read(source: ModelProto | str | Path) -> tuple[ModelProto, str]:
    """A model and the folder of its external data. irc has read it before, so it is one."""
    import onnx

    if isinstance(source, onnx.ModelProto):
        return source, ""
    path = Path(source)
    proto = onnx.ModelProto()
    proto.ParseFromString(path.read_bytes())
    return proto, str(path.absolute().parent)


def onnxruntime(proto: ModelProto, folder: str) -> Runner:
    """ONNX Runtime, on the processor, as fast as it is, for models that it is known to compute right."""
    return _onnxruntime(proto, folder, optimised=True)


def exact_onnxruntime(proto: ModelProto, folder: str) -> Runner:
    """ONNX Runtime, on the processor, node by node: what it fuses of quantised models is not what the nodes say."""
    for node in _nodes_of(proto):
        if node.op_type in ROUGH_IN_ONNXRUNTIME:
            raise Unable(f"it rounds in the midst of {node.op_type}")
    return _onnxruntime(proto, folder, optimised=False)


def _onnxruntime(proto: ModelProto, folder: str, optimised: bool) -> Runner:
    _check_onnxruntime_is_right(proto)

    def session() -> Any:
        import onnxruntime

        runtime: Any = onnxruntime  # it ships no types
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        if not optimised:
            options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        if folder:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        return runtime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])

    ready = _foreign(session)
    return lambda feeds, names: _foreign(lambda: ready.run(names, feeds))


def _check_onnxruntime_is_right(proto: ModelProto) -> None:
    """PROBIT's quantiles are approximations, and LOGISTIC and SOFTMAX of TreeEnsemble change places."""
    for node in _nodes_of(proto):
        names = ("post_transform", "targets", "n_targets")
        given: dict[str, bytes | int] = {a.name: a.s or a.i for a in node.attribute if a.name in names}
        transform, targets = given.get("post_transform", 0), given.get("targets", given.get("n_targets", 1))
        one_target = node.op_type in REGRESSORS and targets == 1
        if transform not in (0, b"NONE") and (one_target or node.op_type == "TreeEnsemble" or transform == b"PROBIT"):
            raise Unable(f"it is not known to be right for {node.op_type} that transforms scores")


def reference(proto: ModelProto, folder: str) -> Runner:
    """onnx.reference, for models that it is known to compute right."""
    _check_reference_is_right(proto)

    def evaluator() -> Any:
        import onnx
        from onnx.external_data_helper import load_external_data_for_model
        from onnx.reference import ReferenceEvaluator

        model = proto
        if folder:
            model = onnx.ModelProto()
            model.CopyFrom(proto)
            load_external_data_for_model(model, folder)
        return ReferenceEvaluator(model)

    ready = _foreign(evaluator)
    return lambda feeds, names: _foreign(lambda: ready.run(names, feeds))


def _check_reference_is_right(proto: ModelProto) -> None:
    from onnx import defs

    opsets = {o.domain: o.version for o in proto.opset_import}
    opset = max(opsets.get("", 0), opsets.get("ai.onnx", 0))
    if opset < FIRST_RIGHT_OPSET:
        raise Unable(f"it is not right for opset {opset}")
    for node in _nodes_of(proto):
        if node.op_type in WRONG_IN_REFERENCE or not defs.has(node.op_type, node.domain):
            raise Unable(f"it is not known to be right for {node.op_type}")


def _nodes_of(proto: ModelProto) -> Iterator[NodeProto]:
    """All nodes, those of functions, branches and loops too."""
    return _with_inner(chain(proto.graph.node, *(function.node for function in proto.functions)))


def _with_inner(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _with_inner(graph.node)


def _foreign(action: Callable[[], Any]) -> Any:
    """What ``action`` gives; whatever another library raises, and each has classes of its own, is `Unable`."""
    try:
        return action()
    except Exception as error:
        raise Unable(reason(error)) from error
