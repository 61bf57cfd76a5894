"""Every pair of an operator and a version that models can ask for is tested: here, or by a node case of onnx."""

import pkgutil
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module

import onnx
import pytest
from onnx import defs, helper

import irc
import tests.kernels.versions
from irc.frontend.onnx.opsets import LOWEST_OPSET
from tests.kernels.versions.rows import COVERED, Pair, reachable
from tests.suites import suite

REFUSED: frozenset[Pair] = frozenset((("ai.onnx.preview.training", "Gradient", 1),))
"""irc does not train (``tests/test_onnx_backend.py`` has its error)."""


def _in_graph(graph: onnx.GraphProto | onnx.FunctionProto, imports: dict[str, int]) -> Iterator[Pair]:
    for node in graph.node:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if domain in imports and defs.has(node.op_type, imports[domain], domain):
            yield domain, node.op_type, defs.get_schema(node.op_type, imports[domain], domain).since_version
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _in_graph(inner, imports)


def of_node_suite() -> set[Pair]:
    """The pairs in the node cases, all of which irc passes (or, of random draws, tests otherwise)."""
    found: set[Pair] = set()
    for case in suite("node"):
        for part in (case.model, *case.model.functions):
            imports = {"" if i.domain == "ai.onnx" else i.domain: i.version for i in part.opset_import}
            found.update(_in_graph(part.graph if part is case.model else part, imports))
    return found


def test_every_version_is_tested() -> None:
    for module in pkgutil.iter_modules(tests.kernels.versions.__path__):
        import_module(f"{tests.kernels.versions.__name__}.{module.name}")
    untested: dict[str, list[int]] = defaultdict(list)
    for domain, op, version in sorted(reachable() - COVERED - REFUSED - of_node_suite()):
        untested[f"{domain or 'onnx'}::{op}"].append(version)
    assert not untested


def _removed() -> list[tuple[str, int]]:
    schemas = defs.get_all_schemas_with_history()
    return sorted(
        (s.name, s.since_version)
        for s in schemas
        if s.deprecated and s.since_version >= LOWEST_OPSET and defs.has(s.name, s.since_version - 1, s.domain)
    )


@pytest.mark.parametrize(("op", "version"), _removed())
def test_versions_that_were_removed_are_refused(op: str, version: int) -> None:
    schema = next(s for s in defs.get_all_schemas_with_history() if (s.name, s.since_version) == (op, version))
    names = [f"x{i}" for i in range(schema.min_input)]
    infos = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in names]
    node = helper.make_node(op, names, ["y"], domain=schema.domain)
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name="y")])
    imports = {"": 13} | {schema.domain: version}
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in imports.items()])
    with pytest.raises(irc.Error, match=f"{op}.*removed from ONNX in opset {version}"):
        irc.compile(model, refuse_unknown=True)
