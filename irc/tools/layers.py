"""`compare_layers`, for ``--layers``: how far each kept value is from an oracle's.

Values are compared in chunks, as those of all layers may not fit in memory. Results of fusion groups are those of the
group; what is inside of it is computed by its members one by one. Differences add up from layer to layer: a layer may
be far off because of one before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irc.ir import Value, dissolve_groups, module_of
from irc.runtime.model import CompiledModel
from irc.runtime.values import is_array
from irc.support.formatting import count
from irc.tools.check.models import comparable, refuse_random, runs
from irc.tools.check.oracles import Oracles, Tolerance, difference, values_of
from irc.tools.extract import typed

BUDGET = 2**28
"""Bytes of values that are compared at once, about."""

AT_ONCE = 256
"""Values that are compared at once, at most."""


@dataclass(frozen=True)
class Layer:
    """One value of a model.

    Attributes:
        value: its name.
        operator: what computes it.
        type: its element type and shape.
        max_error: the largest difference, relative to the largest element of the oracle's; infinite if types, shapes,
            or elements that are no finite numbers differ.
        mean_error: the mean difference, relative to the same.
        cosine: of the angle between both, as vectors; 1.0 if both are zero. None, like the mean, if they are no
            numbers.
        is_right: whether all elements are within the tolerance of a check.
    """

    value: str
    operator: str
    type: str
    max_error: float
    mean_error: float | None
    cosine: float | None
    is_right: bool


@dataclass(frozen=True)
class Layers:
    """All values that a compiled model and an oracle have both, in the order of the model.

    Attributes:
        oracle: its name.
        run: sizes and values of the run that was compared, in words.
        layers: the values.
    """

    oracle: str
    run: str
    layers: tuple[Layer, ...]

    @property
    def first_wrong(self) -> Layer | None:
        """The first layer that is not within the tolerance."""
        return next((layer for layer in self.layers if not layer.is_right), None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: infinite errors are strings."""
        rows = [
            {key: x if not isinstance(x, float) or math.isfinite(x) else str(x) for key, x in vars(layer).items()}
            for layer in self.layers
        ]
        first = self.first_wrong
        return {"oracle": self.oracle, "run": self.run, "first_wrong": first and first.value, "layers": rows}

    def __str__(self) -> str:
        first = self.first_wrong
        width = max((len(layer.value) for layer in self.layers), default=0)
        lines = [f"{'value':<{width}}  {'max error':>9} {'mean':>9} {'cosine':>9}  operator"]
        for layer in self.layers:
            mean = "-" if layer.mean_error is None else f"{layer.mean_error:.1e}"
            cosine = "-" if layer.cosine is None else f"{layer.cosine:.6f}"
            mark = "" if layer.is_right else "  first wrong" if layer is first else "  wrong"
            numbers = f"{layer.max_error:>9.1e} {mean:>9} {cosine:>9}"
            lines.append(f"{layer.value:<{width}}  {numbers}  {layer.operator} {layer.type}{mark}")
        wrong = sum(not layer.is_right for layer in self.layers)
        end = f"the first of {wrong} that are wrong is %{first.value}" if first else "all are within the tolerance"
        lines.append(f"{count(len(self.layers), 'value')} compared with {self.oracle} ({self.run}): {end}")
        return "\n".join(lines)


def compare_layers(
    model: CompiledModel,
    source: Any,
    *,
    seed: int = 0,
    sizes: Mapping[str, int] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Layers:
    """Compare each value that ``model`` keeps with ONNX Runtime, onnx.reference or irc without passes.

    Args:
        model: the compiled model.
        source: what it was compiled from.
        seed: of the inputs that are made up.
        sizes: of named dimensions, as of `irc.check.check_model`.
        given: values of inputs by name.

    Raises:
        Error: IRC332 the model is random; others as of `irc.check.check_model`, but for results that differ.
    """
    refuse_random(model.module)
    run = next(iter(runs(model, source, seeds=(seed,), sizes=sizes or {}, given=given or {})))
    tolerance, asked = Tolerance.of(source), Oracles(source)
    module = module_of(model.graph)
    dissolve_groups(module.main)
    members = typed(module).main
    outside = {value.name for value in comparable(model.graph)}
    kept = {value.name: value for value in comparable(members)}
    values = [kept[name] for name in asked.values() if name in kept]
    found: list[Layer] = []
    for chunk in _chunks(values, run.sizes):
        names = [value.name for value in chunk]
        _, expected = asked.ask(run.feeds, names)
        ours: dict[str, Any] = {}
        for graph, wanted in ((model.graph, outside), (members, kept.keys() - outside)):
            if part := [name for name in names if name in wanted]:
                ours |= values_of(graph, run.feeds, part)
        found += [_layer(value, ours[value.name], expected[value.name], tolerance) for value in chunk]
    oracle = asked.used[-1].name if asked.used else "nothing"
    return Layers(oracle, str(run), tuple(found))


def _chunks(values: Sequence[Value], sizes: Mapping[str, int]) -> Iterator[list[Value]]:
    """``values`` in parts that take `BUDGET` bytes, about, or one each."""
    chunk: list[Value] = []
    taken = 0
    for value in values:
        known = [sizes.get(d, 1) if isinstance(d, str) else d for d in value.type.shape or ()]
        bits = value.type.dtype.bits if value.type.dtype is not None else 32
        needed = math.prod(d for d in known if isinstance(d, int)) * max(1, bits // 8)
        if chunk and (taken + needed > BUDGET or len(chunk) == AT_ONCE):
            yield chunk
            chunk, taken = [], 0
        chunk.append(value)
        taken += needed
    if chunk:
        yield chunk


def _layer(value: Value, found: Any, expected: Any, tolerance: Tolerance) -> Layer:
    error, is_right = difference(found, expected, tolerance)
    mean, cosine = _means(found, expected)
    shown = f"{found.dtype}{list(found.shape)}" if is_array(found) else str(value.type)
    return Layer(value.name, value.node.kind if value.node else "", shown, error, mean, cosine, is_right)


def _means(found: Any, expected: Any) -> tuple[float | None, float | None]:
    """The mean error and the cosine of two arrays; None if they are no numbers, or differ in shape."""
    if not (is_array(found) and is_array(expected)) or found.shape != expected.shape or not found.size:
        return None, None
    if any(array.dtype.kind in "OUSTb" for array in (found, expected)):
        return None, None
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    a, b = found.astype(wide).ravel(), expected.astype(wide).ravel()
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    if not a.size:
        return None, None
    scale = float(np.abs(b).max()) or 1.0
    lengths = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    is_zero = not lengths[0] or not lengths[1]
    cosine = float(lengths[0] == lengths[1]) if is_zero else float(abs(np.vdot(a / lengths[0], b / lengths[1])))
    return float(np.abs(a - b).mean()) / scale, cosine
