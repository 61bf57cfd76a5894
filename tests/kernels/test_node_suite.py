"""The whole ONNX node suite, node by node, through `bind`: values, sharing, and by what means.

Cases whose nodes hold graphs (If, Loop, Scan, SequenceMap) are the interpreter's business, not a kernel's.
"""

from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from irc.errors import Error
from irc.runtime.kernels import bind, means
from irc.runtime.kernels.fallback import refusal
from tests.kernels import helpers
from tests.suites import suite, value

RANDOM = {f"test_bernoulli{kind}{form}" for kind in ("", "_double", "_seed") for form in ("", "_expanded")}
"""Cases whose expected values nobody can draw: they have no seed, or were drawn without the one they have."""

SHARDS = 4
_LAYOUTS = ("rows", "columns", "strided")


class Outcome(NamedTuple):
    means: str  # own, reference, control (holds graphs) or refused
    trouble: str


@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_case(shard: int) -> None:
    """Every case is computed right, and no result shares memory that it must not share."""
    outcomes = _outcomes(shard)
    troubles = {name: o.trouble for name, o in outcomes.items() if o.trouble and name not in RANDOM}
    assert not troubles, "\n".join(f"{name}: {trouble}" for name, trouble in troubles.items())
    counts = Counter(o.means for o in outcomes.values())
    assert counts["own"] > 3 * counts["reference"], counts


@cache
def _outcomes(shard: int) -> dict[str, Outcome]:
    cases = suite("node")[shard::SHARDS]
    with np.errstate(all="ignore"):
        return {case.name: _outcome(case) for case in cases}


def _outcome(case: Any) -> Outcome:
    nodes = [_node(n, case.model) for n in case.model.graph.node]
    if any(a.type in (a.GRAPH, a.GRAPHS) for n in case.model.graph.node for a in n.attribute) or case.model.functions:
        return Outcome("control", "")
    kinds = [means(n) for n in nodes]
    if None in kinds:
        refused = nodes[kinds.index(None)]
        return Outcome("refused", f"{refused.kind} is refused: {refusal(refused)}")
    how = "reference" if "reference" in kinds else "own"
    try:
        for inputs, expected in case.data_sets:
            for layout in _LAYOUTS:
                found = _run(case.model, nodes, [_laid_out(value(v), layout) for v in inputs])
                assert len(found) == len(expected)
                for got, want in zip(found, map(value, expected), strict=True):
                    rounding = _rounding(want)
                    helpers.assert_same([got], [want], max(case.rtol, rounding), max(case.atol, rounding / 10))
    except (AssertionError, Error, ValueError, TypeError, IndexError, KeyError) as error:
        return Outcome(how, f"{type(error).__name__}: {error}"[:400])
    return Outcome(how, "")


def _node(proto: onnx.NodeProto, model: onnx.ModelProto) -> helpers.NodeStandIn:
    opset = next(i.version for i in model.opset_import if i.domain in (proto.domain, proto.domain or "ai.onnx"))
    inputs, outputs = list(proto.input), list(proto.output)
    for names in (inputs, outputs):
        while names and not names[-1]:
            names.pop()
    return helpers.NodeStandIn(
        helpers.kind_of(proto.op_type, proto.domain),
        helpers.since_version(proto.op_type, opset, proto.domain),
        {a.name: helpers._attribute(onnx.helper.get_attribute_value(a)) for a in proto.attribute},
        [None] * len(inputs),
        [None] * len(outputs),
    )


def _run(model: onnx.ModelProto, nodes: list[helpers.NodeStandIn], inputs: list[Any]) -> list[Any]:
    values: dict[str, Any] = {"": None}
    values |= {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    values |= dict(zip((i.name for i in model.graph.input), inputs, strict=True))
    for proto, node in zip(model.graph.node, nodes, strict=True):
        arguments = [values[name] for name in proto.input][: len(node.inputs)]
        result = bind(node)(*arguments)
        results = [result] if len(node.outputs) == 1 else list(result)
        assert len(results) == len(node.outputs)
        _check(proto.op_type, results, arguments)
        values |= {name: r for name, r in zip(proto.output, results, strict=False) if name}
    return [values[o.name] for o in model.graph.output]


def _check(op_type: str, results: list[Any], arguments: list[Any]) -> None:
    found = list(helpers._arrays(results))
    for i, array in enumerate(found):
        assert not isinstance(array, np.generic)
        if op_type in helpers.MAY_SHARE:
            continue
        assert array.flags.c_contiguous, f"{op_type}: a result is not in C order"
        for given in helpers._arrays(arguments):
            assert not np.shares_memory(array, given), f"{op_type}: a result shares memory with an input"
        for other in found[:i]:
            assert not np.shares_memory(array, other), f"{op_type}: two results share memory"


def _laid_out(value: Any, layout: str) -> Any:
    """Read-only arrays, which nothing can write to unnoticed, in an order of elements in memory."""
    if isinstance(value, list):
        return [_laid_out(v, layout) for v in value]
    if not isinstance(value, np.ndarray):
        return value
    array = np.array(value, order="F" if layout == "columns" else "C")
    if layout == "strided" and array.ndim:
        wide = np.repeat(array, 2, axis=-1)
        array = wide[..., ::2]
    array.flags.writeable = False
    return array


def _rounding(value: Any) -> float:
    """A few units in the last place of small floats, whose rounding differs with the order of operations."""
    dtype = value.dtype.name if isinstance(value, np.ndarray) else ""
    return {"float16": 4e-3, "bfloat16": 4e-2}.get(dtype, 1e-4)
