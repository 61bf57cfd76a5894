"""Is a compiled model right? Runs it on seeded inputs and compares with an oracle."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.ir import Graph, Module
from irc.ir.types import TensorType
from irc.runtime.model import CompiledModel
from irc.runtime.values import Array, is_sequence
from irc.seeded import assumed_sizes, seeded_inputs

if TYPE_CHECKING:
    from onnx import ModelProto

    from irc.ir import Value

Feeds = Mapping[str, Any]
Run = Callable[[Feeds, Sequence[str]], dict[str, Any]]
"""Computes the values of the given names, of which outputs and intermediate values may be asked for."""


@dataclass
class CheckResult:
    """How far a model is from its oracle.

    Attributes:
        oracle: who said what is right.
        error: largest difference to it, relative to the largest element of the output concerned.
        inputs: how many input sets were compared.
        sizes: named dimensions and the sizes that were assumed for them.
    """

    oracle: str
    error: float
    inputs: int
    sizes: dict[str, int]

    def __str__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        assumed = f" (assumed {sizes})" if sizes else ""
        return (
            f"agrees with {self.oracle} on {self.inputs} seeded inputs{assumed}, off by {self.error:.1e} of the scale"
        )


def check_model(
    model: CompiledModel,
    source: Any,
    *,
    seeds: Sequence[int] = (0, 1),
    rtol: float = 1e-3,
    atol: float = 1e-5,
    sizes: Mapping[str, int] | None = None,
) -> CheckResult:
    """Compare ``model`` with an oracle on seeded inputs.

    The oracle is ONNX Runtime if it is installed and can run the model, else
    ``onnx.reference`` if the model is new enough for it to be right, else irc's own plan of the model without any pass.

    Args:
        model: the compiled model.
        source: what it was compiled from.
        seeds: one input set each.
        rtol: tolerated difference, relative to each element.
        atol: tolerated difference, relative to the largest element of the output.
        sizes: sizes of named dimensions; 1 for others.

    Raises:
        Error: IRC330 if an output differs; names the first value that does.
    """
    name, oracle = choose_oracle(source)
    worst = 0.0
    for seed in seeds:
        feeds = seeded_inputs(model.inputs, seed, sizes)
        wanted = [o.name for o in model.outputs]
        expected = oracle(feeds, wanted)
        found = model.run(feeds)
        for output in wanted:
            error, right = difference(found[output], expected[output], rtol, atol)
            worst = max(worst, error)
            if not right:
                raise Error(
                    "IRC330",
                    f"output {output!r} differs from {name} by {error:.1e} of its scale for seed {seed}; "
                    f"{_first_difference(model, oracle, feeds, rtol, atol)}",
                    f"output {output!r}",
                )
    return CheckResult(name, worst, len(seeds), assumed_sizes(model.inputs, sizes))


def difference(found: Any, expected: Any, rtol: float, atol: float) -> tuple[float, bool]:
    """Largest difference relative to the largest element, and whether all elements are within tolerance.

    Lists and None compare by element; NaN equals NaN, infinities themselves.
    """
    if is_sequence(expected) and is_sequence(found):
        pairs = [difference(f, e, rtol, atol) for f, e in zip(found, expected, strict=False)]
        return max((p[0] for p in pairs), default=0.0), len(found) == len(expected) and all(p[1] for p in pairs)
    if expected is None or found is None:
        return 0.0, expected is found
    a: Array = np.asarray(found)
    b: Array = np.asarray(expected)
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf"), False
    if a.dtype.kind in "OUSTb" or a.size == 0:
        return 0.0, bool(np.array_equal(a, b))
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide)
    finite = np.isfinite(b)
    scale = float(np.abs(b[finite]).max(initial=0.0))
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf"), False
    gap = np.abs(a[finite] - b[finite])
    right = bool((gap <= atol * scale + rtol * np.abs(b[finite])).all())
    return float(gap.max(initial=0.0)) / (scale or 1.0), right


def choose_oracle(source: Any) -> tuple[str, Run]:
    """The best oracle for ``source`` on this machine, and its name for the user."""
    if not isinstance(source, Module | Graph):
        proto = _proto(source)
        if find_spec("onnxruntime"):
            run = _onnxruntime(proto)
            if run is not None:
                return "ONNX Runtime", run
        if _reference_is_right(proto):
            return "onnx.reference", _reference(proto)
    return "irc without passes", _unoptimised(source)


def _proto(source: Any) -> ModelProto:
    import onnx

    if isinstance(source, onnx.ModelProto):
        return source
    path: str = os.fspath(source)
    return onnx.load(path)  # type: ignore[reportUnknownMemberType]  # annotated with an incomplete PathLike


def _with_outputs(proto: ModelProto, names: Sequence[str]) -> ModelProto:
    """A copy of ``proto`` that also gives the intermediate values ``names``."""
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    present = {o.name for o in copy.graph.output}
    copy.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in present)
    return copy


def _onnxruntime(proto: ModelProto) -> Run | None:
    """ONNX Runtime on ``proto``; None if it cannot run this model at all."""
    import onnxruntime

    runtime: Any = onnxruntime  # it ships no types
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    sessions: dict[tuple[str, ...], Any] = {}

    def run(feeds: Feeds, names: Sequence[str]) -> dict[str, Any]:
        key = tuple(names)
        if key not in sessions:
            model = _with_outputs(proto, names).SerializeToString()
            sessions[key] = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return dict(zip(names, sessions[key].run(list(names), dict(feeds)), strict=True))

    try:
        outputs = tuple(o.name for o in proto.graph.output)
        sessions[outputs] = runtime.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # it has many exceptions of its own for models that it does not support: the next oracle serves
        return None
    return run


FIRST_RIGHT_OPSET = 14
"""Below, onnx.reference computes old versions of many operators (BatchNormalization, Softmax...) as newer ones."""


def _reference_is_right(proto: ModelProto) -> bool:
    from onnx import defs

    opsets = {o.domain: o.version for o in proto.opset_import}
    main = max(opsets.get("", 0), opsets.get("ai.onnx", 0))
    return main >= FIRST_RIGHT_OPSET and all(defs.has(node.op_type, node.domain) for node in proto.graph.node)


def _reference(proto: ModelProto) -> Run:
    from onnx.reference import ReferenceEvaluator

    def run(feeds: Feeds, names: Sequence[str]) -> dict[str, Any]:
        evaluator = ReferenceEvaluator(_with_outputs(proto, names))
        return dict(zip(names, evaluator.run(list(names), dict(feeds)), strict=True))  # type: ignore[reportUnknownMemberType]

    return run


def _unoptimised(source: Any) -> Run:
    from irc.compiler import load_module

    module, _ = load_module(source)
    return lambda feeds, names: values_of(module.main, feeds, names)


def values_of(graph: Graph, feeds: Feeds, names: Sequence[str]) -> dict[str, Any]:
    """Run ``graph`` and give values of its top block by name, intermediate ones included."""
    copy = graph.copy()
    module = Module(copy)
    if graph.module is not None:
        module.defaults.update(graph.module.defaults)
        module.graphs.update({n: g for n, g in graph.module.graphs.items() if g is not graph})
    copy.set_outputs([copy.value(n) for n in names])
    return CompiledModel(module).run(feeds)


def comparable(graph: Graph) -> list[Value]:
    """The tensors computed and used in the top block, in order. (Runtimes may leave out what nothing uses.)"""
    return [
        value
        for node in graph.nodes
        if node.kind != "prim::Constant"
        for value in node.outputs
        if isinstance(value.type, TensorType) and value.has_uses
    ]


def _first_difference(model: CompiledModel, oracle: Run, feeds: Feeds, rtol: float, atol: float) -> str:
    """Which of the values that both sides have differs first."""
    for value in comparable(model.graph):
        found = values_of(model.graph, feeds, [value.name])[value.name]
        try:
            expected = oracle(feeds, [value.name])[value.name]
        except Exception:  # the oracle has no value of that name, whatever it raises to say so
            continue
        error, right = difference(found, expected, rtol, atol)
        if not right:
            kind = value.node.kind if value.node else "input"
            return f"the first value that does is %{value.name}, of {kind}, by {error:.1e} of its scale"
    return "no intermediate value that both sides have does"
