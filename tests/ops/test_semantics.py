"""Each record's kernel computes what its semantics say, within the error that it states."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx.defs
import pytest
from onnx import helper

from irc import ops
from irc.errors import Error
from irc.ops import ScalarSemantics, algebra
from irc.ops.algebra import Apply, Expression, walk
from tests.effort import in_groups
from tests.kernels.helpers import NodeStandIn
from tests.kernels.test_shortcuts import kernel_of as kernel_of_torch
from tests.operators import TORCH
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
RECORDS = [scalar for each in ops.records("onnx") for scalar in each.scalar if scalar.name != "Cast"]


def dtypes_of(record: ScalarSemantics) -> list[np.dtype[Any]]:
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
        return found[np.random.default_rng(1).permutation(len(found))[:250]]
    return found if dtype.kind in "biu" else found[np.r_[0:60, len(found) // 2 : len(found) // 2 + 60]]


def operands_of(record: ScalarSemantics, dtype: np.dtype[Any]) -> list[Array]:
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
                    yield record, attributes, dtype


def kernel_of(record: ScalarSemantics, attributes: dict[str, Any], count: int) -> Any:
    from irc.runtime.kernels.registry import find_binder

    binder = find_binder(record.kind, record.since)
    assert binder is not None
    return binder(NodeStandIn(record.kind, record.since, attributes, [None] * count, [None]))  # type: ignore[arg-type]


def folded(record: ScalarSemantics, attributes: dict[str, Any], dtypes: Sequence[np.dtype[Any]]) -> Expression:
    semantics = record.resolve(attributes)
    if not record.variadic or not isinstance(semantics, algebra.Primitive):
        return record.expression(dtypes, attributes)
    operands = [algebra.Operand(i, dtype) for i, dtype in enumerate(dtypes)]
    found: Expression = operands[0]
    for x in operands[1:]:
        found = semantics(found, x)
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NaNs of some types, cast
@in_groups(cases(), by=lambda record, *_: f"{record.name}-{record.since}")
def test_kernels_compute_what_records_say(
    record: ScalarSemantics, attributes: dict[str, Any], dtype: np.dtype[Any]
) -> None:
    operands = operands_of(record, dtype)
    kernel = kernel_of(record, attributes, len(operands))
    wide = [x.astype(np.float32) if x.dtype in HALVES else x for x in operands]
    expression = folded(record, attributes, [x.dtype for x in wide])
    with np.errstate(all="ignore"):
        found = kernel(*operands)
        exact = np.broadcast_to(scalars.evaluate(expression, wide), found.shape)
    names = {node.primitive.name for node in walk(expression) if isinstance(node, Apply)}
    check(found, exact, record.bound, record.scale, signs=names.isdisjoint({"maximum", "minimum", "sign"}))


def check(found: Array, exact: Array, bound: float, scale: float | Array, signs: bool) -> None:
    """Fail if ``found`` is not ``exact``, rounded, but for errors of ``bound`` ulp of float32 or float64."""
    if found.dtype.kind in "biu":
        assert np.array_equal(scalars.lifted(found), exact)
        return
    limits = ml_dtypes.finfo(found.dtype)
    wide = found.astype(np.float64).astype(scalars.LONG)
    exact = exact.astype(scalars.LONG)
    assert np.array_equal(np.isnan(wide), np.isnan(exact))
    number = ~np.isnan(exact)
    wide, exact, scale = wide[number], exact[number], np.broadcast_to(scale, number.shape)[number]
    largest = scalars.LONG(2) ** int(limits.maxexp)
    wide, exact = np.clip(wide, -largest, largest), np.clip(exact, -largest, largest)
    _, exponent = np.frexp(np.maximum(np.abs(exact), np.minimum(scale, largest)))
    unit = np.ldexp(scalars.LONG(1), np.maximum(exponent - 1, int(limits.minexp)) - int(limits.nmant))
    error = np.abs(wide - exact) / unit
    if signs:  # but of what cancels, but for an error
        is_far = (np.abs(exact) > bound * unit) | (np.asarray(scale) == 0)
        assert np.array_equal(np.signbit(wide)[is_far], np.signbit(exact)[is_far])
    if found.dtype.itemsize == 2:  # computed in float32, and rounded once
        bound = 0.5 + bound / 256
    worst = int(error.argmax()) if error.size else 0
    assert not error.size or error[worst] <= bound, (float(error[worst]), float(exact[worst]), float(wide[worst]))


PARAMETERS: dict[str, list[tuple[Any, ...]]] = {
    "celu": [(), (0.6,)],
    "elu": [(), (1.3, 0.6, 2.0)],
    "gelu": [(), ("tanh",)],
    "div": [(), ("floor",), ("trunc",)],
    "hardshrink": [(0.3,)],
    "hardtanh": [(), (-2, 3), (2, 1)],
    "leaky_relu": [(), (0.0,), (2.0,), (-0.5,)],
    "logit": [(), (1e-3,)],
    "nan_to_num": [(), (1.0, 2.0, -3.0)],
    "round": [(), (2,), (-1,)],
    "softplus": [(), (2.0, 5)],
    "softshrink": [(), (0.3,)],
    "threshold": [(1, 2), (0, -3)],
}
OF_NUMBERS = {"add": 2, "sub": 2, "rsub": 2, "addcmul": 3, "addcdiv": 3}
"""How many tensors these take, before a number that is an operand of their semantics, too."""

NOT_HERE = {
    *("float_power", "pow"),  # whose element types differ; power itself is in ONNX
    *("glu", "prelu"),  # of parts of an operand, of channels
    *(
        "nextafter",
        "digamma",
        "erfinv",
        "lgamma",
        "i0",
        "special_i0e",
        "special_i1",
        "special_i1e",
    ),  # see `scalars.WITHOUT`
}
DIVISIONS = {"div", "floor_divide", "fmod", "remainder"}


def torch_cases() -> Iterator[Any]:
    for record in [scalar for each in ops.records("aten") for scalar in each.scalar]:
        if record.name in NOT_HERE:
            continue
        kinds = TORCH[record.name].takes or TORCH[record.name].takes_both or "buif"
        for parameters in PARAMETERS.get(record.name, [(1.5,)] if record.name in OF_NUMBERS else [()]):
            for dtype in DTYPES:
                kind = {"b": "b", "i": "i", "u": "u"}.get(dtype.kind, "f")
                is_cast = TORCH[record.name].result_type in ("float", "wider", "") and kind != "f"
                if record.name.startswith("logical_"):
                    kinds = "b"
                elif record.name.startswith(("bitwise_", "__")):
                    kinds = "iu"
                elif kind == "b":
                    continue
                if kind in kinds and not is_cast and dtype.name not in ("uint32", "uint64"):
                    yield record, parameters, dtype


def torch_operands(record: ScalarSemantics, dtype: np.dtype[Any]) -> list[Array]:
    count = OF_NUMBERS.get(record.name, 1 if record.name == "hardshrink" else record.arity)
    if count == 1:
        return [special(dtype)]
    x, y = np.meshgrid(few(dtype)[:90], few(dtype)[-90:])
    if record.name in DIVISIONS and dtype.kind in "iu":
        y = np.where(y == 0, 3, y).astype(dtype)
    if record.name == "masked_fill":
        return [x, x < y, y[:1, :1].reshape(())]
    if record.name == "where":
        return [x < y, x, y]
    return [x, y, np.where(np.isnan(x), dtype.type(0.3), x) if count == 3 and dtype.kind == "f" else x][:count]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@in_groups(torch_cases(), by=lambda record, *_: record.name)
def test_kernels_of_torch_compute_what_records_say(
    record: ScalarSemantics, parameters: tuple[Any, ...], dtype: np.dtype[Any]
) -> None:
    operands = torch_operands(record, dtype)
    kernel = kernel_of_torch(record.name, len(operands) + len(parameters))
    if record.name in OF_NUMBERS and dtype.kind in "iub":
        parameters = (3,)
    with np.errstate(all="ignore"):
        try:
            found = kernel(*[x.copy() for x in operands], *parameters)
        except Error:  # such as a difference of bools
            assert dtype.kind in "iub", (record.name, dtype)
            return
        wide = [x.astype(np.float32) if x.dtype in HALVES else x for x in operands]
        if record.name in OF_NUMBERS or record.name == "hardshrink":
            rounded = np.array(parameters[0], np.float32).astype(dtype).astype(wide[0].dtype)
            wide.append(rounded if dtype.kind == "f" or dtype in HALVES else np.array(parameters[0], wide[0].dtype))
            attributes = {}
        else:
            attributes = dict(zip(record.parameters, parameters))
        if record.name == "nan_to_num" and not parameters and dtype in HALVES:
            limits = ml_dtypes.finfo(dtype)
            attributes = {"posinf": float(limits.max), "neginf": float(limits.min)}
        expression = record.expression([x.dtype for x in wide], attributes)
        exact = np.broadcast_to(scalars.evaluate(expression, wide), found.shape)
    names = {node.primitive.name for node in walk(expression) if isinstance(node, Apply)}
    signs = names.isdisjoint({"maximum", "minimum", "fmax", "fmin", "sign"})
    scale: Any = record.scale
    if scale == math.inf:
        with np.errstate(all="ignore"):
            scale = scalars.sizes(expression, wide) if exact.dtype != object else 0.0
    check(found, exact, record.bound, scale, signs=signs)


def test_each_primitive_has_a_meaning_here() -> None:
    assert not scalars.UNKNOWN
