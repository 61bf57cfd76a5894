"""Oracles of results: ONNX Runtime, onnx.reference where it is right, irc without passes.

Also, how far two results may be apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import ModelProto

from irc.compiler import load_module
from irc.errors import Error
from irc.ir import CONSTANT, DType, Graph, Module, module_of, with_subgraphs
from irc.passes import PassManager
from irc.passes.shapes import ShapeInference
from irc.runtime.backends import NUMPY
from irc.runtime.model import CompiledModel
from irc.runtime.values import Array, is_mapping, is_sequence
from irc.tools.check import peers
from irc.tools.check.peers import Unable

Feeds = Mapping[str, Any]


@dataclass(frozen=True)
class Oracle:
    """Another way to compute a model.

    Attributes:
        name: what to call it.
        values: names that `run` may be asked for: values of the top level, intermediate ones included.
        run: the values of these names. Raises `Unable`, or `Error` if it is irc itself.
    """

    name: str
    values: Collection[str]
    run: Callable[[Feeds, Sequence[str]], dict[str, Any]]


def oracles(source: Any) -> Iterator[Oracle]:
    """The oracles for the source of a compilation, best first; the last is irc without passes."""
    if not isinstance(source, Module | Graph):
        proto, folder = peers.read(source)
        yield oracle_of(peers.ONNX_RUNTIME, peers.exact_onnxruntime, proto, folder)
        yield oracle_of(peers.REFERENCE, peers.reference, proto, folder)
    yield unoptimised(source)


class Oracles:
    """The oracles of a model, each made when it is first needed.

    Attributes:
        unable: those that cannot run it, and why.
        used: those that have been asked.
    """

    def __init__(self, source: Any) -> None:
        self._more = oracles(source)
        self._made: list[Oracle] = []
        self.unable: dict[str, str] = {}
        self.used: list[Oracle] = []

    def _all(self) -> Iterator[Oracle]:
        yield from list(self._made)
        for oracle in self._more:
            self._made.append(oracle)
            yield oracle

    def values(self) -> list[str]:
        """The names of values that all of them may be asked for, in the order of the model."""
        every = list(self._all())
        shared = set[str].intersection(*(set(oracle.values) for oracle in every))
        return [name for name in every[-1].values if name in shared]

    def ask(self, feeds: Feeds, names: Sequence[str]) -> tuple[Oracle, dict[str, Any]]:
        """The best oracle that can run the model on ``feeds``, and the values called ``names`` there."""
        for oracle in self._all():
            try:
                found = oracle.run(feeds, names)
            except Unable as refusal:
                self.unable.setdefault(oracle.name, str(refusal))
                continue
            self.used.append(oracle)
            return oracle, found
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
    return CompiledModel(module, backend=NUMPY).run({**feeds, **given})  # the reference: native code has its own


def unoptimised(source: Any) -> Oracle:
    """Irc's own plan of what ``irc.compile`` was given, without any pass."""
    module, _ = load_module(source)
    values = [value.name for node in module.main.nodes for value in node.outputs]
    return Oracle("irc without passes", values, partial(values_of, module.main))


# -- others --------------------------------------------------------------------


def oracle_of(name: str, peer: peers.Peer, proto: ModelProto, folder: str) -> Oracle:
    """The oracle called ``name`` that computes a model by another runtime."""
    ready: dict[tuple[str, ...], peers.Runner] = {}

    def run(feeds: Feeds, names: Sequence[str]) -> dict[str, Any]:
        key = tuple(names)
        if key not in ready:
            ready.clear()  # each has the weights
            ready[key] = peer(_returning(proto, names), folder)
        return dict(zip(names, ready[key](dict(feeds), names), strict=True))

    return Oracle(name, frozenset(name for node in proto.graph.node for name in node.output), run)


def _returning(proto: ModelProto, names: Sequence[str]) -> ModelProto:
    """A copy of ``proto`` that also returns the values ``names``."""
    copy = deepcopy(proto)
    # A value that is an output already must not be listed twice.
    present = {output.name for output in copy.graph.output}
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in present)
    return copy


# How far two results may be apart, and how far they are.


_LAST_PLACE: dict[DType | None, float] = {DType.FLOAT16: 2.0**-10, DType.BFLOAT16: 2.0**-7}
"""What the last place of numbers in half precision is, of the number."""


class Tolerance(NamedTuple):
    """How far a result may be off: ``rtol`` of each element plus ``atol`` of the largest one.

    Integers must be equal. Numbers of ``rounded`` bits and less (quantised ones) may be off by their last place.
    """

    rtol: float = 1e-3
    atol: float = 1e-5
    rounded: int = 8

    def strict(self) -> Tolerance:
        """The tolerance for one or few operators, whose errors add up less; half precision rounds each."""
        if self.rtol > Tolerance().rtol:
            return self
        return Tolerance(self.rtol / 10, self.atol / 10, self.rounded)

    @staticmethod
    def of(source: Any) -> Tolerance:
        """The tolerance for a model: if it computes in half precision, each operator may round differently.

        Args:
            source: the model as `irc.compile` takes it, not as passes have changed it, which is what is checked.
        """
        module, _ = load_module(source)
        with suppress(Error):  # a branch that is never taken may not fit together: it says nothing of others
            PassManager([ShapeInference()]).run(module)
        nodes = [n for n in with_subgraphs(*module.graphs.values()) if n.kind != CONSTANT]
        types = {v.type for v in (*module.main.inputs, *(v for n in nodes for v in n.outputs))}
        coarsest = max((_LAST_PLACE.get(type.dtype, 0.0) for type in types), default=0.0)
        return Tolerance(max(Tolerance().rtol, 4 * coarsest), max(Tolerance().atol, 4 * coarsest))


def difference(found: Any, expected: Any, tolerance: Tolerance) -> tuple[float, bool]:
    """Largest difference relative to the largest element, and whether all are within tolerance.

    Lists, maps and None compare by element; NaN equals NaN, infinities themselves.
    """
    if is_sequence(expected) and is_sequence(found):
        pairs = [difference(f, e, tolerance) for f, e in zip(found, expected, strict=False)]
        return max((p[0] for p in pairs), default=0.0), len(found) == len(expected) and all(p[1] for p in pairs)
    if is_mapping(expected) and is_mapping(found):
        keys = list(expected)
        error, right = difference([found.get(k) for k in keys], [expected[k] for k in keys], tolerance)
        return error, right and found.keys() == expected.keys()
    if expected is None or found is None:
        return 0.0, expected is found
    if any(is_sequence(x) or is_mapping(x) for x in (found, expected)):
        return float("inf"), False
    return _array_difference(np.asarray(found), np.asarray(expected), tolerance)


def _array_difference(a: Array, b: Array, tolerance: Tolerance) -> tuple[float, bool]:
    are_texts = a.dtype.kind in "OUST" and b.dtype.kind in "OUST"
    if a.shape != b.shape or not (a.dtype == b.dtype or are_texts):
        return float("inf"), False
    if a.dtype.kind in "OUSTb" or a.size == 0:
        return 0.0, bool(np.array_equal(a, b))
    dtype = DType.from_numpy(a.dtype)
    if dtype.is_integer and dtype.bits > tolerance.rounded and not np.array_equal(a, b):
        gap = np.abs(a.astype(np.float64) - b.astype(np.float64)).max()
        return float(gap / (np.abs(b.astype(np.float64)).max() or 1.0)), False
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide)
    finite = np.isfinite(b)
    scale = float(np.abs(b[finite]).max(initial=0.0))
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return float("inf"), False
    gap = np.abs(a[finite] - b[finite])
    allowed = tolerance.atol * scale + tolerance.rtol * np.abs(b[finite])
    if dtype.bits <= tolerance.rounded:
        allowed += _last_places(dtype, b[finite])
    return float(gap.max(initial=0.0)) / (scale or 1.0), bool((gap <= allowed).all())


def _last_places(dtype: DType, numbers: Array) -> Any:
    """For each of ``numbers``, as float64, at most how far away the next number of type ``dtype`` is."""
    if dtype.is_integer:  # NumPy's kinds do not tell, for int4 say
        return 1.0
    import ml_dtypes  # slow to import, needed only for its own types

    finfo: Any = ml_dtypes.finfo
    info = finfo(dtype.numpy)
    return np.maximum(float(info.eps) * np.abs(numbers), float(info.smallest_subnormal))
