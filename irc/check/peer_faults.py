"""Where ONNX Runtime and onnx.reference are known to differ from irc: there, they are not used as oracles.

Each row states when this is so for an operator; docs/conformance.md explains the differences, and irc's choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc.frontend.onnx.pytorch import FRACTIONAL_SINCE, PRODUCER
from irc.ir.types import DType
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto


class Use(NamedTuple):
    """The properties of a node that matter here.

    Attributes:
        attributes: by name.
        inputs: names; "" or missing for absent ones.
        opset: of ONNX's own operators in the model.
        producer: the producer that the model names.
    """

    attributes: Mapping[str, Any]
    inputs: list[str]
    opset: int
    producer: str

    def has(self, position: int) -> bool:
        """Whether the input at ``position`` is there."""
        return position < len(self.inputs) and bool(self.inputs[position])


Fault = Callable[[Use], str | None]
"""How a node is used if the other runtime computes something else there, to be said behind its operator; else None."""

FIRST_RIGHT_OPSET = 14
"""Below, onnx.reference computes old versions of many operators (BatchNormalization, Softmax...) as newer ones."""

_FEW_BITS = frozenset(dtype.onnx for dtype in DType if dtype.is_integer and dtype.bits < 8)


def _always(use: Use) -> str:
    return ""


def _is_padded_alike(use: Use) -> bool:
    return use.attributes.get("auto_pad") in (b"SAME_UPPER", b"SAME_LOWER")


def _padded(use: Use) -> str | None:
    strides, kernel = use.attributes.get("strides", ()), use.attributes.get("kernel_shape")
    if not _is_padded_alike(use):
        return None
    if any(s > 1 for s in strides) and (kernel is None or any(k < s for k, s in zip(kernel, strides))):
        return " with auto_pad and windows smaller than strides"
    return None


def _pooled(use: Use) -> str | None:
    if _is_padded_alike(use) and any(d > 1 for d in use.attributes.get("dilations", ())):
        return " with auto_pad and dilations"
    return _padded(use)


def _resized(use: Use) -> str | None:
    mode = use.attributes.get("coordinate_transformation_mode")
    if mode == b"tf_crop_and_resize":
        return " of a region"
    if mode == b"align_corners" and use.opset >= FRACTIONAL_SINCE and use.has(2) and use.producer != PRODUCER:
        return " by scales with aligned corners"
    return None


def _cast(use: Use) -> str | None:
    """Floats are rounded to integers of few bits, to others cut off; what is negative is the least power of two."""
    to = use.attributes.get("to")
    if to in _FEW_BITS:
        return " to integers of less than 8 bits"
    return " to float8e8m0" if to == DType.FLOAT8E8M0.onnx else _unlimited(use)


def _unlimited(use: Use) -> str | None:
    """Numbers that are just too large for a type of float8 become the largest one, or no number for an infinity."""
    return None if use.attributes.get("saturate", 1) else " that does not saturate"


def _causal(use: Use) -> str | None:
    return " with is_causal and a past" if use.attributes.get("is_causal") and use.has(4) else None


def _masked(use: Use) -> str | None:
    return " with a mask" if use.opset == 23 and use.has(3) else None


def _transformed(use: Use) -> str | None:
    """PROBIT's quantiles are approximations, regressors of one target do not transform scores."""
    get = use.attributes.get
    transform = get("post_transform", b"NONE")
    one_target = get("targets", get("n_targets", 1)) == 1
    return " that transforms scores" if transform == b"PROBIT" or (one_target and transform != b"NONE") else None


def _transformed_by_probit(use: Use) -> str | None:
    return " that transforms scores" if use.attributes.get("post_transform") == b"PROBIT" else None


def _voting(use: Use) -> str | None:
    get = use.attributes.get
    labels = get("classlabels_int64s") or get("classlabels_strings") or ()
    if len(labels) == 2 and len(set(get("class_ids", ()))) == 2:
        return " of two classes that both have votes"
    return _transformed_by_probit(use)


def _summed(use: Use) -> str | None:
    get = use.attributes.get
    if get("n_targets", 1) > 1 and (get("base_values") or get("base_values_as_tensor")):
        return " of several targets with base values"
    return _transformed(use)


def _of_no_votes(use: Use) -> str | None:
    get = use.attributes.get
    extremes = get("aggregate_function") in (b"MIN", b"MAX")
    return " of several targets by their least or largest votes" if extremes and get("n_targets", 1) > 1 else None


def _of_trees(use: Use) -> str | None:
    """LOGISTIC and SOFTMAX are exchanged. (The attribute is a number: 0 is NONE.)"""
    return " that transforms scores" if use.attributes.get("post_transform", 0) else None


IN_ONNXRUNTIME: dict[str, Fault] = {
    "Attention": _causal,
    "Cast": _cast,
    **dict.fromkeys(["CastLike", "QuantizeLinear"], _unlimited),
    **dict.fromkeys(["Conv", "ConvInteger", "ConvTranspose", "QLinearConv"], _padded),
    **dict.fromkeys(["AveragePool", "LpPool", "MaxPool"], _pooled),
    "MaxUnpool": lambda use: " with an output_shape" if use.has(2) else None,
    "Resize": _resized,
    **dict.fromkeys(["LinearClassifier", "SVMClassifier"], _transformed_by_probit),
    **dict.fromkeys(["LinearRegressor", "SVMRegressor"], _transformed),
    "TreeEnsemble": _of_trees,
    "TreeEnsembleClassifier": _voting,
    "TreeEnsembleRegressor": _summed,
}
"""What ONNX Runtime computes otherwise."""

IN_REFERENCE: dict[str, Fault] = {
    "Attention": _masked,
    "ConvTranspose": _padded,
    **dict.fromkeys(["LRN", "LinearClassifier", "TreeEnsemble", "TreeEnsembleClassifier"], _always),
    "TreeEnsembleRegressor": _of_no_votes,
}
"""What onnx.reference may compute wrong: LRN sums over the batch, classifiers choose a class before they transform the
scores, TreeEnsemble does not transform them; ConvTranspose pads by less than nothing; Attention 23 pads masks as
Attention 24 does; the least or largest of no votes is the largest or least number there is."""


_FINDING_NAN = frozenset("ArgMax ArgMin Hardmax MaxPool ReduceMax ReduceMin".split())


def differs_by_choice(node: NodeProto, opset: int, output: str, operands: Sequence[Any]) -> bool:
    """Whether irc's result ``output`` of ``node`` is another than ONNX Runtime's for a known reason.

    Of a number that is none, the largest or least of elements is none; OneHot before version 11 does not count from the
    end; Dropout before version 12 drops nothing, so that its mask is all true.
    """
    first = operands[0] if operands else None
    if not is_array(first):
        return False
    if node.op_type in _FINDING_NAN:
        return first.dtype.kind == "f" and bool(np.isnan(first).any())
    if node.op_type == "OneHot":
        return opset < 11 and bool((first < 0).any())
    return node.op_type == "Dropout" and opset < 12 and list(node.output).index(output) == 1


def fault_in(proto: ModelProto, faults: Mapping[str, Fault]) -> str:
    """The first use of an operator in the model to which one of ``faults`` applies; "" if there is none."""
    from onnx.helper import get_attribute_value

    opset, producer = opset_of(proto), proto.producer_name
    for node in nodes_of(proto):
        fault = faults.get(node.op_type)
        if fault is None:
            continue
        attributes = {a.name: get_attribute_value(a) for a in node.attribute if not a.ref_attr_name}
        how = fault(Use(attributes, list(node.input), opset, producer))
        if how is not None:
            return f"{node.op_type}{how}"
    return ""


def opset_of(proto: ModelProto) -> int:
    """The version of ONNX's own operators that the model imports; 0 if it imports none."""
    return max((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), default=0)


def nodes_of(proto: ModelProto) -> Iterator[NodeProto]:
    """All nodes, those of functions, branches and loops too."""
    return nodes_in(chain(proto.graph.node, *(function.node for function in proto.functions)))


def nodes_in(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """``nodes``, and those of their branches and loops."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from nodes_in(graph.node)
