"""Every version of an operator that a model can ask for, as rows: inputs, attributes, and what must come out.

A *pair* is an operator and a version of it (its ``since_version``). It is
reachable if a model whose opset irc supports in full (6 on) can ask for it.
`ROWS` and `covers` say which pairs a module tests; ``test_complete.py`` asks
for all of them. Each row runs through `irc.compile`: without passes and native
code, at the first opset in which its version holds; with the default ones, at
the last; and with all inputs but the first as weights, since passes bind to
versions too, after `shape-inference`, whose types must be true of results.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, defs, helper, numpy_helper

import irc
from irc.frontend.onnx.opsets import LOWEST_OPSET
from irc.ir.types import TensorType, Type
from tests.kernels.helpers import assert_same, run_ort_model

Pair = tuple[str, str, int]
"""Domain, operator, version."""

NEWEST_OF_ONNX_RUNTIME = 26
"""Opsets after this one ONNX Runtime 1.31 takes for drafts."""

ALIKE = {("AveragePool", 1): 7, ("RNN", 1): 7, ("LSTM", 1): 7, ("GRU", 3): 7, ("RoiAlign", 22): 16}
"""Operator and a version that ONNX Runtime lacks -> one that computes the same, of what rows have in both."""

COVERED: set[Pair] = set()


@cache
def reachable() -> frozenset[Pair]:
    """All pairs of the installed onnx; versions by which an operator was removed cannot be asked for."""
    names = {(s.domain, s.name) for s in defs.get_all_schemas_with_history()}
    return frozenset((d, n, v) for d, n in names for v in versions_of(n, d))


@cache
def versions_of(op: str, domain: str = "") -> dict[int, range]:
    """Version -> the opsets in which it holds."""
    low, high = defs.C.schema_version_map()[domain]
    found: dict[int, list[int]] = {}
    for opset in range(LOWEST_OPSET if domain == "" else low, high + 1):
        if defs.has(op, opset, domain):
            schema = defs.get_schema(op, opset, domain)
            if not schema.deprecated or not defs.has(op, schema.since_version - 1, domain):
                found.setdefault(schema.since_version, []).append(opset)
    return {version: range(opsets[0], opsets[-1] + 1) for version, opsets in found.items()}


def since(op: str, first: int, before: int = 1000) -> list[int]:
    """The versions of an operator of ONNX from ``first`` on, and before another."""
    return [v for v in versions_of(op) if first <= v < before]


@dataclass
class Row:
    """One node, and what it computes at some versions.

    Attributes:
        inputs: arrays (None: absent), lists of arrays (sequences), dicts (maps to float32).
        versions: those at which the row holds; None: every version.
        expected: what NumPy says, called with inputs and attributes; None: ONNX Runtime says.
        outputs: how many; "" in the names of those that are left out.
    """

    op: str
    inputs: Sequence[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    versions: Sequence[int] | None = None
    expected: Callable[..., Any] | None = None
    outputs: int | Sequence[str] = 1
    domain: str = ""
    rtol: float = 1e-4
    atol: float = 1e-5

    def at(self) -> Sequence[int]:
        return tuple(versions_of(self.op, self.domain)) if self.versions is None else self.versions

    def model(self, opset: int, weights: bool) -> tuple[onnx.ModelProto, dict[str, Any]]:
        """The model of this node, and feeds."""
        names = ["" if x is None else f"x{i}" for i, x in enumerate(self.inputs)]
        given = [(n, x) for n, x in zip(names, self.inputs, strict=True) if x is not None]
        fixed = [n for n, x in given[1:] if isinstance(x, np.ndarray)] if weights else []
        out = [f"y{i}" for i in range(self.outputs)] if isinstance(self.outputs, int) else list(self.outputs)
        attributes = {
            k: numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v for k, v in self.attributes.items()
        }
        node = helper.make_node(self.op, names, out, domain=self.domain, **attributes)
        graph = helper.make_graph(
            [node],
            "g",
            [helper.make_value_info(n, type_of(x, weights)) for n, x in given if n not in fixed],
            [onnx.ValueInfoProto(name=n) for n in out if n],
            [numpy_helper.from_array(x, n) for n, x in given if n in fixed],
        )
        imports = [helper.make_opsetid(self.domain, opset)]
        if self.domain:
            imports.append(helper.make_opsetid("", 13))
        return helper.make_model(graph, opset_imports=imports, ir_version=10), {
            n: x for n, x in given if n not in fixed
        }

    def check(self, version: int) -> None:
        """irc gives what is expected, however the model is made."""
        opsets = versions_of(self.op, self.domain)[version]
        want = self._expected(version)
        for opset, passes, weights, backend in (
            (opsets[0], "none", False, "numpy"),
            (opsets[-1], "default", False, "auto"),
            (opsets[0], "shape-inference,default", True, "auto"),
        ):
            model, feeds = self.model(opset, weights)
            compiled = irc.compile(model, passes=passes, backend=backend)
            found = list(compiled.run(feeds).values())
            try:
                assert_same(found, want, self.rtol, self.atol)
                for output, value in zip(compiled.graph.outputs, found, strict=True):
                    assert is_true_of(output.type, value), f"{output.type} was inferred of {value.dtype}{value.shape}"
            except AssertionError as error:
                how = ", inputs as weights" if weights else ""
                raise AssertionError(f"opset {opset}, passes {passes!r}{how}: {error}") from None

    def _expected(self, version: int) -> list[Any]:
        if self.expected is None:
            opsets = versions_of(self.op, self.domain)[ALIKE.get((self.op, version), version)]
            known = [opset for opset in opsets if self.domain or opset <= NEWEST_OF_ONNX_RUNTIME]
            assert known, "ONNX Runtime has no such version: say what is expected"
            model, feeds = self.model(known[-1], weights=True)
            return run_ort_model(model, list(feeds.values()))
        found = self.expected(*self.inputs, **self.attributes)
        return list(found) if isinstance(found, tuple) else [found]


def is_true_of(inferred: Type, value: Any) -> bool:
    """Whether nothing in the type of a tensor contradicts a run-time value."""
    if not isinstance(inferred, TensorType):
        return True
    if inferred.dtype is not None and inferred.dtype.numpy != value.dtype:
        return False
    if inferred.shape is None:
        return True
    pairs = zip(inferred.shape, value.shape, strict=False)
    return inferred.rank == value.ndim and all(d == n for d, n in pairs if isinstance(d, int))


def type_of(value: Any, sized: bool = False) -> onnx.TypeProto:
    """The type of a run-time value: with its sizes if ``sized``; elements of sequences have not even ranks."""
    if isinstance(value, dict):
        ((key, element), *_) = value.items()
        key_type = TensorProto.STRING if isinstance(key, str) else TensorProto.INT64
        return helper.make_map_type_proto(key_type, type_of(np.asarray(element, np.float32)))
    if isinstance(value, list):
        element = type_of(value[0])
        element.tensor_type.ClearField("shape")
        return helper.make_sequence_type_proto(element)
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype))
    return helper.make_tensor_type_proto(element_type, value.shape if sized else [None] * value.ndim)


def each(rows: Sequence[Row]) -> pytest.MarkDecorator:
    """Parametrize a test over the rows and their versions, which are thereby covered.

    `make test` tries each row at some version, and each version by some row; to try all rows at all versions is slow.
    """
    cases = list(_cases(rows))
    COVERED.update((row.domain, row.op, version) for row, version in cases)
    parameters = [pytest.param(*case, id=f"{case[0].op}-{case[1]}-{i}") for i, case in enumerate(cases)]
    tried: set[Any] = set()
    for i in Random(0).sample(range(len(cases)), len(cases)):
        row, version = cases[i]
        if {id(row), (row.op, version)} <= tried:
            parameters[i] = pytest.param(*cases[i], id=parameters[i].id, marks=pytest.mark.slow)
        tried |= {id(row), (row.op, version)}
    return pytest.mark.parametrize(("row", "version"), parameters)


def _cases(rows: Sequence[Row]) -> Iterator[tuple[Row, int]]:
    for row in rows:
        for version in row.at():
            assert (row.domain, row.op, version) in reachable(), f"{row.op} has no version {version}"
            yield row, version


def covers(op: str, *versions: int, domain: str = "") -> pytest.MarkDecorator:
    """Parametrize a test over ``version``: these versions of ``op`` (none named: all), which are thereby covered."""
    chosen = versions or tuple(versions_of(op, domain))
    pairs = {(domain, op, version) for version in chosen}
    assert pairs <= reachable(), f"{op} has no such versions: {pairs - reachable()}"
    COVERED.update(pairs)
    return pytest.mark.parametrize("version", chosen)


def opset_for(op: str, version: int, domain: str = "") -> int:
    """The last opset in which the version holds."""
    return versions_of(op, domain)[version][-1]


def floats(*shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Seeded float32 values."""
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape).astype(np.float32)


def integers(*shape: int, seed: int = 0, low: int = -5, high: int = 6, dtype: Any = np.int64) -> np.ndarray:
    """Seeded integers in ``[low, high)``."""
    return np.random.default_rng([seed, *shape]).integers(low, high, shape).astype(dtype)


def ints(*values: Any) -> np.ndarray:
    """A vector of int64."""
    return np.array(values, np.int64)
