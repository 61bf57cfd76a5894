"""The models: onnx's node cases and its simple, PyTorch-operator, PyTorch-converted and light models."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import onnx

from irc.demo import BUNDLED, bundled_model, randomize_weights, seeded_inputs
from tests.suites import suite, value

Feeds = dict[str, Any]

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted", "light")


class Case(NamedTuple):
    """One model.

    Attributes:
        name: what onnx calls it.
        kind: one of `KINDS`.
        load: gives the model and values of its inputs, one or more sets.
        rtol: how far results may be off, of each element.
        atol: and absolutely.
    """

    name: str
    kind: str
    load: Callable[[], tuple[onnx.ModelProto, list[Feeds]]]
    rtol: float = 1e-3
    atol: float = 1e-7


@cache
def cases(kind: str) -> tuple[Case, ...]:
    """All of a kind, by name."""
    if kind == "light":
        return tuple(Case(f"light_{name}", kind, lambda name=name: _light(name)) for name in BUNDLED)
    return tuple(
        Case(test.name, kind, lambda test=test: _test(test), test.rtol, test.atol)
        for test in sorted(suite(kind), key=lambda test: test.name)
    )


def _light(name: str) -> tuple[onnx.ModelProto, list[Feeds]]:
    model = randomize_weights(bundled_model(name), seed=0)
    return model, [seeded_inputs(model, 0)]


def _test(test: Any) -> tuple[onnx.ModelProto, list[Feeds]]:
    if test.model is not None:
        return test.model, [_feeds(test.model, inputs) for inputs, _ in test.data_sets]
    folder = Path(test.model_dir)
    model = onnx.load(folder / "model.onnx")
    sets = [_read(data, model) for data in sorted(folder.glob("test_data_set_*"))]
    return model, [_feeds(model, inputs) for inputs in sets]


def _read(folder: Path, model: onnx.ModelProto) -> list[Any]:
    values: list[Any] = []
    for number, declared in enumerate(model.graph.input):
        file = folder / f"input_{number}.pb"
        if file.exists():
            kind = declared.type.WhichOneof("value")
            message = onnx.SequenceProto() if kind == "sequence_type" else onnx.TensorProto()
            message.ParseFromString(file.read_bytes())
            values.append(message)
    return values


def _feeds(model: onnx.ModelProto, values: Sequence[Any]) -> Feeds:
    weights = {tensor.name for tensor in model.graph.initializer}
    names = [entry.name for entry in model.graph.input if entry.name not in weights]
    return {name: value(given) for name, given in zip(names, values, strict=True)}
