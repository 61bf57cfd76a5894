"""The cases of ``onnx.backend.test``, of every category, with the inputs and expected outputs that onnx ships."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import ModelProto, OptionalProto, SequenceProto, TensorProto, TypeProto, numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

DataSet = tuple[list[Any], list[Any]]
"""Inputs and expected outputs."""

CATEGORIES = {
    "node": "node",
    "simple": "simple",
    "light": "real",
    "PyTorch-operator": "pytorch-operator",
    "PyTorch-converted": "pytorch-converted",
}
"""As documents call them -> as the loader does. Its real models are those of ``data/light``."""

REFUSED = frozenset(("test_gradient_of_add", "test_gradient_of_add_and_mul"))
"""Training: irc computes no gradients."""

RANDOM = frozenset(f"test_bernoulli{kind}{form}" for kind in ("", "_double", "_seed") for form in ("", "_expanded"))
"""Cases whose expected values are draws that nobody can repeat."""


class Case(NamedTuple):
    """A model with what it must compute.

    Attributes:
        category: one of `CATEGORIES`.
        rtol, atol: the tolerances that the suite gives it.
        load: the model and its data, read when called.
    """

    category: str
    name: str
    rtol: float
    atol: float
    load: Callable[[], tuple[ModelProto, list[DataSet]]]


@cache
def cases() -> tuple[Case, ...]:
    """All of them, category by category, in the order of their names."""
    found: list[Case] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # making expected values divides by zero here and there
        warnings.simplefilter("ignore")
        for category, kind in CATEGORIES.items():
            loaded = sorted(load_model_tests(kind=kind), key=lambda case: case.name)
            found += [Case(category, c.name, c.rtol, c.atol, _loader(c)) for c in loaded]
    return tuple(found)


def _loader(case: Any) -> Callable[[], tuple[ModelProto, list[DataSet]]]:
    if case.model is not None:
        return partial(_in_memory, case.model, case.data_sets)
    if case.model_dir is not None:
        return partial(_in_folder, Path(case.model_dir))
    return partial(_light, Path(onnx.__file__).parent.parent / case.url)


def _in_memory(model: ModelProto, data_sets: Sequence[Any]) -> tuple[ModelProto, list[DataSet]]:
    return model, [(list(map(_value, inputs)), list(map(_value, outputs))) for inputs, outputs in data_sets]


def _in_folder(folder: Path) -> tuple[ModelProto, list[DataSet]]:
    model = onnx.load(folder / "model.onnx")
    sets: list[DataSet] = []
    for data in sorted(folder.glob("test_data_set_*")):
        inputs, outputs = (
            [_read(data / f"{stem}_{i}.pb", info.type) for i, info in enumerate(infos) if _has(data, stem, i)]
            for stem, infos in (("input", model.graph.input), ("output", model.graph.output))
        )
        sets.append((inputs, outputs))
    return model, sets


def _light(path: Path) -> tuple[ModelProto, list[DataSet]]:
    """A model with constant weights, the input that onnx's runner makes, and the output shipped with it."""
    model = onnx.load(path)
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [Runner.generate_dummy_data(i) for i in model.graph.input if i.name not in weights]
    expected = [_read(path.with_name(f"{path.stem}_output_{i}.pb"), o.type) for i, o in enumerate(model.graph.output)]
    return model, [(inputs, expected)]


def _has(folder: Path, stem: str, index: int) -> bool:
    return (folder / f"{stem}_{index}.pb").exists()


def _read(path: Path, type_proto: TypeProto) -> Any:
    protos = {"tensor_type": TensorProto, "sequence_type": SequenceProto, "optional_type": OptionalProto}
    return _value(protos[type_proto.WhichOneof("value")].FromString(path.read_bytes()))


def _value(given: Any) -> Any:
    if isinstance(given, TensorProto):
        return numpy_helper.to_array(given)
    if isinstance(given, SequenceProto):
        return numpy_helper.to_list(given)
    if isinstance(given, OptionalProto):
        return numpy_helper.to_optional(given)
    return np.asarray(given) if isinstance(given, np.generic) else given


def check(expected: Any, found: Any, rtol: float, atol: float) -> None:
    """The runner's comparison, which alone cannot take absent values. Raises AssertionError."""
    present = [x is not None for x in expected]
    if present != [x is not None for x in found]:
        raise AssertionError("other values are absent")
    for want, got in zip(expected, found, strict=True):
        if isinstance(want, list):
            check(want, got, rtol, atol)
        elif want is not None:
            Runner.assert_similar_outputs([want], [np.asarray(got)], rtol, atol)
