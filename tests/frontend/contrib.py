"""Models of one operator of com.microsoft, and what they must give."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper

import irc
from irc.frontend.onnx_export import export_model

Arrays = Mapping[str, np.ndarray | None]


def contrib(
    op_type: str,
    arrays: Arrays,
    outputs: str,
    opset: int = 21,
    constants: str = "",
    ranked: bool = True,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of one node, whose inputs are called as in ``arrays`` (None: absent), and what to run it with.

    ``constants``: those inputs that are weights of the model; ``ranked``: whether the others' ranks are declared.
    """
    given = {name: array for name, array in arrays.items() if array is not None}
    kept = constants.split()
    feeds = {name: array for name, array in given.items() if name not in kept}
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(a.dtype), [f"{name}{i}" for i in range(a.ndim)] if ranked else None
        )
        for name, a in feeds.items()
    ]
    names = ["" if name.startswith("_") else name for name in outputs.split()]
    domain = "" if op_type == "SimplifiedLayerNormalization" else "com.microsoft"
    node = helper.make_node(
        op_type, [n if a is not None else "" for n, a in arrays.items()], names, domain=domain, **attributes
    )
    weights = [onnx.numpy_helper.from_array(given[name], name) for name in kept]
    results = [helper.make_empty_tensor_value_info(name) for name in names if name]
    graph = helper.make_graph([node], "g", infos, results, weights)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


def check(
    expected: Mapping[str, np.ndarray], op_type: str, arrays: Arrays, tolerance: float = 1e-5, **kwargs: Any
) -> None:
    """Assert that the node gives this, by any passes, with ranks known or not, and exported as well."""
    for ranked in (True, False):
        model, feeds = contrib(op_type, arrays, " ".join(expected), ranked=ranked, **kwargs)
        compiled = irc.compile(model)
        again = irc.compile(export_model(compiled.module))
        for found in (irc.compile(model, passes="none").run(feeds), compiled.run(feeds), again.run(feeds)):
            for name, value in expected.items():
                if not name.startswith("_"):
                    assert found[name].dtype == value.dtype
                    np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=tolerance)


def random(seed: int, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)
