"""Each record's kernel computes what its semantics say, within the error that it states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx.defs
import pytest
from onnx import helper

from irc import ops
from irc.ops import Operator, algebra
from irc.ops.algebra import Apply, Expression, walk
from irc.ops.registry import FAMILIES
from tests.kernels.helpers import NodeStandIn
from tests.ops import scalars

Array = np.ndarray[Any, Any]

ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "BitShift": [{"direction": "LEFT"}, {"direction": "RIGHT"}],
    "Celu": [{}, {"alpha": 0.6}],
    "Clip": [{}, {"min": -1.5, "max": 2.5}, {"max": 3.0}],
    "Elu": [{}, {"alpha": 0.7}, {"alpha": -2.0}],
    "Gelu": [{}, {"approximate": "tanh"}],
    "HardSigmoid": [{}, {"alpha": 0.3, "beta": 0.1}],
    "IsInf": [{"detect_positive": p, "detect_negative": n} for p in (0, 1) for n in (0, 1)],
    "LeakyRelu": [{}, *({"alpha": alpha} for alpha in (0.0, 1.0, 2.5, -0.5))],
    "Mod": [{}, {"fmod": 1}],
    "Selu": [{}, {"alpha": 1.3, "gamma": 0.6}],
    "Shrink": [{}, {"lambd": 0.8, "bias": 0.3}],
    "SwiGLU": [{}, {"alpha": 1.7}],
    "Swish": [{}, {"alpha": 1.7}, {"alpha": -1.0}],
    "ThresholdedRelu": [{}, {"alpha": 0.3}],
}
HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
DTYPES = [np.dtype(t) for t in ("?", "i1", "u1", "i2", "i4", "u4", "i8", "u8", "f", "d")] + HALVES
RECORDS = [record for record in ops.records("onnx") if record.name != "Cast"]


def dtypes_of(record: Operator) -> list[np.dtype[Any]]:
    """The element types that the standard has the operator for."""
    schema = onnx.defs.get_schema(record.name, 28 if onnx.defs.onnx_opset_version() >= 28 else 24)
    variable = schema.inputs[record.result or 0].type_str
    (types,) = [c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == variable]
    return [d for d in DTYPES if f"tensor({_name(d)})" in types]


def _name(dtype: np.dtype[Any]) -> str:
    return onnx.TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(dtype)).lower()


def special(dtype: np.dtype[Any]) -> Array:
    """All elements of a small type; of others, edges, numbers next to them, and random ones."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.itemsize == 1:
        return np.arange(256, dtype=np.uint8).view(dtype)
    rng = np.random.default_rng(0)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        edges = [limits.min, limits.min + 1, 0, 1, 2, 3, 7, 8, limits.bits - 1, limits.bits, limits.max - 1, limits.max]
        return np.array([*edges, *([-1, -2] if dtype.kind == "i" else []), *rng.integers(0, 100, 30)]).astype(dtype)
    if dtype.itemsize == 2:
        return np.arange(1 << 16, dtype=np.uint16).view(dtype)
    limits = np.finfo(dtype)
    sizes = [0, limits.smallest_subnormal, 3e-39, limits.smallest_normal, limits.max, np.inf, np.nan]
    sizes += [1e-8, 0.5, 1, 1.5, 2, 2.5, 3, 4.5, 6, 20, 88, 89, 104, 709, 710, 745, 0.46875]
    sizes += [*np.abs(rng.standard_normal(400) * 4), *np.exp(rng.standard_normal(300) * 9)]
    with np.errstate(over="ignore"):
        sizes = np.array(sizes, np.float64).astype(dtype)
    return np.concatenate([sizes, -sizes])


def few(dtype: np.dtype[Any]) -> Array:
    """Some of `special`, to be met in pairs."""
    found = special(dtype)
    if dtype.itemsize == 2 and dtype.kind not in "iu":
        return found[np.random.default_rng(1).permutation(len(found))[:400]]
    return found if dtype.kind in "biu" else found[np.r_[0:60, len(found) // 2 : len(found) // 2 + 60]]


def operands_of(record: Operator, dtype: np.dtype[Any]) -> list[Array]:
    count = 2 + (dtype.kind in "iu") if record.variadic else record.arity  # a sum of three floats may cancel
    if record.name == "Where":
        x, y = np.meshgrid(few(dtype)[:60], few(dtype)[-60:])
        return [x < y, x, y]
    if record.name == "Clip" and count == 3:
        low, high = ([0, 1], [9, 3]) if dtype.kind in "iu" else ([-1.5, 0.0], [2.5, 2.5])
        return [special(dtype), np.array(low[0]).astype(dtype), np.array(high[0]).astype(dtype)]
    if count == 1:
        # Conversions to float64 and back have no defined result for the largest integers.
        is_cut = record.floats and dtype.kind in "iu" and dtype.itemsize == 8
        return [special(dtype) % (1 << 50) if is_cut else special(dtype)]
    x, y = np.meshgrid(few(dtype), few(dtype))
    if record.name == "SwiGLU":
        y = y[:, :10]
        x = x[:, :10]
    return [x, y, x[::-1, ::-1]][:count]


def cases() -> Iterator[Any]:
    for record in RECORDS:
        for attributes in ATTRIBUTES.get(record.name, [{}]):
            if not attributes or record.name != "Clip" or record.arity == 1:
                for dtype in dtypes_of(record):
                    yield pytest.param(
                        record, attributes, dtype, id=f"{record.name}-{record.since}-{attributes}-{dtype}"
                    )


def kernel_of(record: Operator, attributes: dict[str, Any], count: int) -> Any:
    from irc.runtime.kernels.registry import find_binder

    binder = find_binder(record.kind, record.since)
    assert binder is not None
    return binder(NodeStandIn(record.kind, record.since, attributes, [None] * count, [None]))  # type: ignore[arg-type]


def folded(record: Operator, attributes: dict[str, Any], dtypes: Sequence[np.dtype[Any]]) -> Expression:
    semantics = record.resolve(attributes)
    if not record.variadic or not isinstance(semantics, algebra.Primitive):
        return record.expression(dtypes, attributes)
    operands = [algebra.Operand(i, dtype) for i, dtype in enumerate(dtypes)]
    found: Expression = operands[0]
    for x in operands[1:]:
        found = semantics(found, x)
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NaNs of some types, cast
@pytest.mark.parametrize(("record", "attributes", "dtype"), list(cases()))
def test_kernels_compute_what_records_say(record: Operator, attributes: dict[str, Any], dtype: np.dtype[Any]) -> None:
    operands = operands_of(record, dtype)
    kernel = kernel_of(record, attributes, len(operands))
    wide = [x.astype(np.float32) if x.dtype in HALVES else x for x in operands]
    expression = folded(record, attributes, [x.dtype for x in wide])
    with np.errstate(all="ignore"):
        found = kernel(*operands)
        exact = np.broadcast_to(scalars.evaluate(expression, wide), found.shape)
    names = {node.primitive.name for node in walk(expression) if isinstance(node, Apply)}
    check(found, exact, record.bound, record.scale, signs=names.isdisjoint({"maximum", "minimum", "sign"}))


def check(found: Array, exact: Array, bound: float, scale: float, signs: bool) -> None:
    """Fail if ``found`` is not ``exact``, rounded, but for errors of ``bound`` ulp of float32 or float64."""
    if found.dtype.kind in "biu":
        assert np.array_equal(scalars.lifted(found), exact)
        return
    limits = ml_dtypes.finfo(found.dtype)
    wide = found.astype(np.float64).astype(scalars.LONG)
    exact = exact.astype(scalars.LONG)
    assert np.array_equal(np.isnan(wide), np.isnan(exact))
    number = ~np.isnan(exact)
    wide, exact = wide[number], exact[number]
    if signs:
        assert np.array_equal(np.signbit(wide), np.signbit(exact))
    largest = scalars.LONG(2) ** int(limits.maxexp)
    wide, exact = np.clip(wide, -largest, largest), np.clip(exact, -largest, largest)
    _, exponent = np.frexp(np.maximum(np.abs(exact), scale))
    unit = np.ldexp(scalars.LONG(1), np.maximum(exponent - 1, int(limits.minexp)) - int(limits.nmant))
    error = np.abs(wide - exact) / unit
    if found.dtype.itemsize == 2:  # computed in float32, and rounded once
        bound = 0.5 + bound / 256
    worst = int(error.argmax()) if error.size else 0
    assert not error.size or error[worst] <= bound, (float(error[worst]), float(exact[worst]), float(wide[worst]))


def test_each_primitive_has_a_meaning_here() -> None:
    assert not scalars.UNKNOWN


def test_families_have_the_records_that_they_list() -> None:
    for namespace, modules in FAMILIES.items():
        for listed in modules.values():
            for name in listed.split():
                found = ops.versions(f"{namespace}::{name}")
                assert [record.kind for record in found] == [f"{namespace}::{name}"] * len(found) != []
                assert len({record.since for record in found}) == len(found)
