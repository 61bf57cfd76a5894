"""Backends: who compiles what, what runs where one declines, and the one that docs/how-to/backends.md shows."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irc
from irc import backend as onnx_backend
from irc.cli import main
from irc.ir import Graph, parse_graph
from irc.runtime.backends import ArrayType, Backend, CompiledSteps, Declined, PlannedStep, Unsupported, find_backend
from irc.runtime.execution import Frame
from irc.runtime.plan import lower
from irc.support import plugins
from irc.tools import report_text
from tests.doc_blocks import file_of
from tests.graphs import ir
from tests.models import onnx_model

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "backends.md"

GROUPED = ir(
    "x: Float(*, 8); y: Float(8)",
    "a = Mul(x, y); m = LRN(Relu(Add(a, y)), size=3); e = Sqrt(Abs(m)); s = MatMul(Neg(e), y)",
    "s, e",
)
"""Two groups: one with one result, and one with two."""

X, Y = np.linspace(-3, 3, 32, dtype=np.float32).reshape(4, 8), np.linspace(-1, 1, 8, dtype=np.float32)


class Members(Backend):
    """Compiles groups to plans of their members, and notes what it was asked."""

    name = "members"

    def __init__(self, refuse: str = "", decline: Callable[[Sequence[ArrayType]], bool] = lambda types: False) -> None:
        self.refuse, self.decline = refuse, decline
        self.asked: list[tuple[ArrayType, ...]] = []
        self.outs: list[bool] = []

    def refuses(self, group: Graph) -> Declined | None:
        return Declined(self.refuse) if self.refuse else None

    def compile_group(self, group: Graph, operands: tuple[ArrayType, ...]) -> Any:
        self.asked.append(operands)
        if self.decline(operands):
            return Declined("of these types it is not worth it")
        plan = lower(group)

        def kernel(*arrays: Any, out: Any = None) -> Any:
            results = [x.copy() for x in plan.run(arrays)]
            given = out if isinstance(out, list) else [out] * len(results)
            self.outs.append(any(x is not None for x in given))
            for i, place in enumerate(given):
                if place is not None:
                    assert not any(np.may_share_memory(place, x) for x in arrays)
                    place[...], results[i] = results[i], place
            return tuple(results) if len(results) > 1 else results[0]

        return kernel


def results(model: irc.CompiledModel, x: Any = X) -> list[Any]:
    return list(model.run({"x": x, "y": Y}).values())


def same(found: Sequence[Any], expected: Sequence[Any]) -> None:
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_what_is_refused_runs_as_if_it_were_not_fused() -> None:
    backend = Members(refuse="it is Sunday")
    model, plain = (irc.compile(parse_graph(GROUPED), backend=b) for b in (backend, "numpy"))
    for _ in range(3):
        same(results(model), results(plain))
        assert model.counters == plain.counters
    assert not backend.asked
    assert model.report.declined == {"it is Sunday": len(model.report.groups)}
    assert "2 groups left to NumPy: it is Sunday" in str(dict(report_text.rows(model.report))["backend"])


def test_what_a_kernel_cannot_compute_its_members_compute() -> None:
    class Unfit(Members):
        def compile_group(self, group: Graph, operands: tuple[ArrayType, ...]) -> Any:
            self.asked.append(operands)

            def kernel(*arrays: Any, out: Any = None) -> Any:
                raise Unsupported("it has a cold")

            return kernel

    backend = Unfit()
    model, plain = (irc.compile(parse_graph(GROUPED), backend=b) for b in (backend, "numpy"))
    for _ in range(3):
        same(results(model), results(plain))
        assert model.counters == plain.counters
    assert len(backend.asked) == 2
    assert model.report.declined == {"it has a cold": 2}


class Table(Backend):
    """Makes one function of all steps that it is given; counts them."""

    name = "table"

    def __init__(self) -> None:
        self.steps: list[int] = []

    def compile_steps(self, steps: Sequence[PlannedStep]) -> Sequence[CompiledSteps]:
        self.steps.append(len(steps))
        calls = [(step, lower(_alone(step))) for step in steps]

        def run(frame: Frame) -> bool:
            for step, plan in calls:
                operands = [x for x in step.operands if x is not None]
                arrays = [frame[x.slot] for x in operands]
                assert [ArrayType(x.dtype, x.shape) for x in arrays] == [x.type for x in operands]
                frame[step.outs[0]][...] = plan.run([x.copy() for x in arrays])[0]
            return True

        return [CompiledSteps(len(steps), run)]


def _alone(step: PlannedStep) -> Graph:
    from irc.ir.clone import ValueMap, clone_node

    graph = Graph("step")
    mapping: ValueMap = {v: graph.add_input(v.type, v.name) for v in dict.fromkeys(step.node.inputs)}
    graph.set_outputs(graph.block.append(clone_node(step.node, graph, mapping)).outputs)
    return graph


def test_steps_of_planned_runs_become_one() -> None:
    backend = Table()
    model, plain = (irc.compile(parse_graph(GROUPED), backend=b) for b in (backend, "numpy"))
    for i in range(4):
        same(results(model), results(plain))
        assert model.counters.compiled == (len(backend.steps) if i else 0)
    assert sum(backend.steps) >= 2
    followed = model.profile({"x": X, "y": Y})  # step by step
    assert followed.counters.compiled == 0
    assert {node.kind for node in followed.nodes} >= {"onnx::Mul", "onnx::LRN", "onnx::Sqrt"}


def test_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Offer:
        name, value = "members", "my_package:Members"

        def load(self) -> Any:
            return Members

    monkeypatch.setattr(
        "irc.runtime.backends.entry_points", lambda group: [Offer()] if group == plugins.BACKENDS else []
    )
    assert isinstance(find_backend("members"), Members)
    assert find_backend("numpy") is None
    own = find_backend("auto")
    assert (own is None) == (find_spec("llvmlite") is None)
    assert own is None or own.name == "native"
    with pytest.raises(irc.Error, match=r"^IRC327: .*no backend is called 'member'; did you mean 'members'\?"):
        irc.compile(parse_graph(GROUPED), backend="member")
    model = irc.compile(parse_graph(GROUPED), backend="members")
    path = tmp_path / "m.irc"
    model.save(path)
    assert b"members" not in path.read_bytes()
    expected = results(irc.load(path))
    loaded = irc.load(path, backend="members")
    same(results(loaded), expected)
    assert loaded.counters.compiled
    for name in ("members", "numpy", "auto"):
        assert main(["run", str(path), "--seed", "0", "--dim", "x[0]=3", "--backend", name]) == 0
    assert main(["run", str(path), "--seed", "0", "--dim", "x[0]=3", "--backend", "nonsense"]) == 1
    assert "IRC327" in capsys.readouterr().err


def test_what_is_no_backend_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Offer:
        name, value = "wrong", "my_package:Wrong"

        def __init__(self, made: Any) -> None:
            self.load = lambda: made

    for made, message in [(dict, "is not an irc.runtime.backends.Backend"), (lambda x: x, "cannot be made")]:
        monkeypatch.setattr("irc.runtime.backends.entry_points", lambda group, made=made: [Offer(made)])
        with pytest.raises(irc.Error, match=message) as caught:
            find_backend("wrong")
        assert caught.value.code == "IRC304"


def test_the_backend_of_the_page() -> None:
    scope: dict[str, Any] = {}
    exec(file_of(PAGE, "my_package.py"), scope)
    model = irc.compile(parse_graph(GROUPED), backend=scope["Numexpr"]())
    plain = irc.compile(parse_graph(GROUPED), backend="numpy")
    for rows in (4, 4, 1, 4):
        for a, b in zip(results(model, X[:rows]), results(plain, X[:rows]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
        assert model.counters.compiled == 1
    assert model.report.declined == {"an expression has one result, of at most 20 operands": 1}


def test_onnx_backend() -> None:
    from onnx import helper

    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])]
    model = onnx_model(nodes, {"x": [4]})
    backend = Members()
    (found,) = onnx_backend.prepare(model, backend=backend).run([X[0, :4]])
    np.testing.assert_array_equal(found, -np.maximum(X[0, :4], 0))
    assert backend.asked
