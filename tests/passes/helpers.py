"""Running pipelines on IR text, under every check there is."""

import re
from typing import Any

import numpy as np
import pytest

import irc.compiler  # noqa: F401  # registers the passes of other layers
from irc.ir import Graph, Module, parse_graph, parse_module, structurally_equal
from irc.passes import PassManager, PassReport, create_instruments
from irc.runtime.plan import evaluate, lower

CHECKS = ("verify-each", "verify-alias", "verify-changed")


def run_passes(target: Graph | Module, pipeline: str) -> PassReport:
    """Run ``pipeline`` in place; graph, alias analysis, claims and idempotence are checked after each pass."""
    return PassManager(pipeline, create_instruments(CHECKS), evaluate).run(target)


def transform(text: str, pipeline: str, weights: dict[str, Any] | None = None) -> Graph:
    """The graph in ``text`` after ``pipeline``."""
    graph = parse_graph(text, weights)
    run_passes(graph, pipeline)
    return graph


def transform_module(text: str, pipeline: str, weights: dict[str, Any] | None = None) -> Module:
    """The module in ``text`` after ``pipeline``."""
    module = parse_module(text, weights)
    run_passes(module, pipeline)
    return module


def assert_becomes(before: str, pipeline: str, after: str, weights: dict[str, Any] | None = None) -> None:
    """The graph in ``before`` is that in ``after`` once ``pipeline`` has run."""
    graph = transform(before, pipeline, weights)
    difference = structurally_equal(graph, parse_graph(after, weights))
    assert difference is None, f"{difference}\n{graph}"


def assert_unchanged(text: str, pipeline: str, weights: dict[str, Any] | None = None) -> None:
    """``pipeline`` leaves the graph in ``text`` as it is."""
    assert_becomes(text, pipeline, text, weights)


def cases(text: str, *defaults: str) -> list[Any]:
    """Parameters of a test: what follows each line ``== name | a | b``, without comments, and a, b.

    What such a line leaves out is as in ``defaults``.
    """
    found: list[Any] = []
    for section in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        head, _, body = section.partition("\n")
        name, *more = head.split(" | ")
        lines = [line for line in body.strip("\n").split("\n") if not line.startswith("# ")]
        found.append(pytest.param("\n".join(lines), *more, *defaults[len(more) :], id=name))
    return found


def kinds(graph: Graph) -> list[str]:
    """The kinds of all nodes but constants, in pre-order, without ``onnx::`` and ``aten::``."""
    return [n.kind.split("::")[1] for n in graph.walk() if n.kind != "prim::Constant"]


def assert_same_results(before: Graph | Module, after: Graph | Module, *inputs: Any, rtol: float = 0) -> None:
    """Both compute the same, and call their outputs the same."""
    first, second = (m.main if isinstance(m, Module) else m for m in (before, after))
    assert [v.name for v in first.outputs] == [v.name for v in second.outputs]
    expected = lower(first).run([np.copy(x) for x in inputs])
    found = lower(second).run([np.copy(x) for x in inputs])
    for a, b, value in zip(expected, found, first.outputs, strict=True):
        np.testing.assert_allclose(b, a, rtol=rtol, atol=rtol * np.abs(a).max(initial=0), err_msg=value.name)
        assert a.dtype == b.dtype
