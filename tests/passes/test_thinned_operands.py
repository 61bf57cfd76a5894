"""What is said of ONNX operators' results is so in runs, of operands that have axes of 1, or fewer axes."""

import random
from collections import defaultdict
from typing import Any

import numpy as np
import onnx
import pytest

import irc
from irc.errors import Error
from irc.ir.types import TensorType
from tests.suites import suite, value

_LARGE = 100_000

Array = np.ndarray[Any, Any]


def cases() -> dict[str, list[tuple[onnx.ModelProto, list[Array]]]]:
    """By operators, models of one node with inputs that they take."""
    found: dict[str, list[tuple[onnx.ModelProto, list[Array]]]] = defaultdict(list)
    for case in suite("node"):
        nodes = case.model.graph.node
        if len(nodes) == 1 and len(found[nodes[0].op_type]) < 30:
            inputs = [value(v) for v in case.data_sets[0][0]]
            arrays = [v for v in inputs if isinstance(v, np.ndarray)]
            if 1 < len(inputs) == len(arrays) and sum(v.size for v in arrays) < _LARGE:
                found[nodes[0].op_type].append((case.model, arrays))
    return found


BY_OPERATOR = cases()


def thinned(x: Array, rng: random.Random) -> Array:
    for axis in range(x.ndim):
        if x.shape[axis] > 1 and rng.random() < 0.35:
            x = x.take([0], axis)
    while x.ndim and x.shape[0] == 1 and rng.random() < 0.3:
        x = x.reshape(x.shape[1:])
    return x


def of_inputs(model: onnx.ModelProto, inputs: list[Array]) -> onnx.ModelProto:
    """``model`` for inputs of these shapes."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for declared, x in zip(changed.graph.input, inputs, strict=True):
        kind = declared.type.tensor_type.elem_type
        declared.CopyFrom(onnx.helper.make_tensor_value_info(declared.name, kind, x.shape))
    for declared in changed.graph.output:
        declared.type.tensor_type.ClearField("shape")
    return changed


@pytest.mark.parametrize("op", sorted(op for op, found in BY_OPERATOR.items() if found))
@pytest.mark.parametrize(("cases", "turns"), [(5, 3), pytest.param(30, 7, marks=pytest.mark.slow)])
def test_types_are_so(op: str, cases: int, turns: int) -> None:
    rng = random.Random(op)
    for model, inputs in BY_OPERATOR[op][:cases]:
        for turn in range(turns):
            some = rng.sample(range(len(inputs)), rng.randint(1, len(inputs))) if turn else []
            given = [thinned(x, rng) if i in some else x for i, x in enumerate(inputs)]
            try:
                compiled = irc.compile(of_inputs(model, given), passes="shape-inference")
                with np.errstate(all="ignore"):
                    results = compiled.run({i.name: x for i, x in zip(model.graph.input, given)})
            except Error as error:
                assert turn, "as they are, they fit"
                if error.code == "IRC309":  # a mistake in a pass
                    raise
                continue
            for output, result in zip(compiled.graph.outputs, results.values()):
                if isinstance(output.type, TensorType) and output.type.shape is not None:
                    sizes = [
                        n if d is None or isinstance(d, str) else d for d, n in zip(output.type.shape, result.shape)
                    ]
                    assert (*sizes,) == result.shape and len(output.type.shape) == result.ndim, [x.shape for x in given]
                    assert output.type.dtype is None or output.type.dtype.numpy == result.dtype
