"""Every model that the onnx package brings along imports, verifies and survives the way through text."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from irc.frontend.onnx import import_model
from irc.ir import Module, Tensor, parse_module, structurally_equal
from irc.ir.types import OptionalType, without_shapes
from tests.frontend.helpers import DATA
from tests.suites import suite

LIGHT = sorted((DATA / "light").glob("*.onnx"))
OTHERS = sorted(DATA.glob("*/*/model.onnx"))


def check(module: Module) -> None:
    module.verify()
    text = str(module)
    parsed = parse_module(text, module.weights)
    assert str(parsed) == text
    assert structurally_equal(parsed, module) is None


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
    check(module)
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


def test_whole_node_suite_imports() -> None:
    cases = suite("node")
    assert len(cases) > 1500
    for case in cases:
        module = import_model(case.model)
        try:
            check(module)
        except Exception as error:
            raise AssertionError(case.name) from error
        assert [v.name for v in module.main.inputs] == [i.name for i in case.model.graph.input], case.name
        assert [v.name for v in module.main.outputs] == [o.name for o in case.model.graph.output], case.name


def test_declared_output_types_of_the_node_suite_hold() -> None:
    """The kind and element type that the importer gives every output are the ones the suite declares."""
    from irc.frontend.onnx.types import from_proto

    for case in suite("node"):
        graph = import_model(case.model).main
        for value, declared in zip(graph.outputs, case.model.graph.output, strict=True):
            expected = without_shapes(from_proto(declared.type, case.name))
            if case.name == "test_loop16_seq_none":  # an optional that no iteration need replace
                expected = OptionalType(expected)
            assert without_shapes(value.type) == expected, case.name
