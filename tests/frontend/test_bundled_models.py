"""Every model that the onnx package brings along imports, verifies and survives the way through text."""

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from irc.frontend.onnx import import_model
from irc.ir import Tensor
from tests.frontend.helpers import DATA
from tests.test_node_suite import survives_text

LIGHT = sorted((DATA / "light").glob("*.onnx"))
OTHERS = sorted(DATA.glob("*/*/model.onnx"))


def count_nodes(graph: onnx.GraphProto) -> Counter[str]:
    """Operators by type, nested ones too."""
    found: Counter[str] = Counter()
    for node in graph.node:
        found[node.op_type] += 1
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found += count_nodes(attribute.g)
    return found


def test_all_the_models_are_there() -> None:
    assert len(LIGHT) == 9
    assert len(OTHERS) >= 140


@pytest.mark.parametrize("path", LIGHT + OTHERS, ids=lambda p: p.stem if p.parent.name == "light" else p.parent.name)
def test_models_import(path: Any) -> None:
    module = import_model(path)
    survives_text(module)
    proto = onnx.load(path)
    graph = module.main
    constants = {i.name for i in proto.graph.initializer}
    assert [v.name for v in graph.outputs] == [o.name for o in proto.graph.output]
    assert [v.name for v in graph.inputs] == [
        i.name for i in proto.graph.input if proto.ir_version >= 4 or i.name not in constants
    ]
    names = {name for node in proto.graph.node for name in node.output if name}
    assert names <= {v.name for v in graph.values()}
    kept = Counter(node.kind.split("::")[1] for node in graph.walk() if node.kind != "prim::Constant")
    expected = count_nodes(proto.graph)
    expected.pop("Constant", None)
    assert kept == expected


@pytest.mark.parametrize("path", LIGHT, ids=lambda p: p.stem)
def test_versions_are_those_of_opset_9(path: Any) -> None:
    for node in import_model(path).main.walk():
        if node.kind != "prim::Constant":
            schema = onnx.defs.get_schema(node.kind.removeprefix("onnx::"), 9)
            assert node.version == schema.since_version


def test_contents_of_all_constants() -> None:
    compared = 0
    for path in LIGHT + OTHERS:
        proto, graph = onnx.load(path), import_model(path).main
        expected = {t.name: t for t in proto.graph.initializer}
        for node in proto.graph.node:
            if node.op_type == "Constant":
                expected[node.output[0]] = node.attribute[0].t
        for name, tensor in expected.items():
            value = graph.value(name)
            if value.is_param:
                continue
            found = value.node.attributes["value"]
            assert isinstance(found, Tensor)
            assert found.dtype.onnx == tensor.data_type
            np.testing.assert_array_equal(found.numpy(), numpy_helper.to_array(tensor))
            compared += 1
    assert compared > 1000
