"""Policies of one's own: the worked example of docs/how-to/fusion-policy.md, and that no policy makes a wrong group."""

import importlib
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irc
from irc.alias import analyze
from irc.errors import Error
from irc.fuser import Cluster, Fuse, Policy, operators
from irc.fuser.policy import is_anchor
from irc.fuser.subgraph import subgraph_of
from irc.ir import Graph, Node, parse_graph
from irc.ops import Operator, register
from irc.ops.pointwise import is_elementwise
from irc.passes import PassManager, create_instruments
from irc.passes.in_place import StorageOwners
from irc.runtime import kernel
from irc.tools.report_text import fusion
from tests.doc_blocks import file_of
from tests.effort import examples
from tests.fuser.helpers import CHECKS, kinds, the_group
from tests.graphs import ir, typed_ir
from tests.programs.generator import Program, programs
from tests.programs.running import expected, run
from tests.programs.test_fuser import FAMILIES

PATH = Path(__file__).parents[2] / "docs" / "how-to" / "fusion-policy.md"
PAGE = PATH.read_text("utf-8")
T = "Float(2, 3)"


@pytest.fixture
def scoped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_registries: None) -> Iterator[Any]:
    """The page's own module."""
    (tmp_path / "scoped.py").write_text(file_of(PATH, "scoped.py"), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("scoped")
    sys.modules.pop("scoped")


def fused(policy: Fuse, text: str) -> Graph:
    graph = parse_graph(text)
    PassManager([policy], create_instruments(CHECKS)).run(graph)
    return graph


def test_options_of_the_example(scoped: Any) -> None:
    text = typed_ir("x, y, z: Float(2, 3)", "a = Add(x, y); b = Mul(a, z); c = Neg(b)", "c")
    assert kinds(fused(scoped.FuseWithinScopes(), text)) == ["[Add Mul Neg]"]
    assert kinds(fused(scoped.FuseWithinScopes(max_inputs=2), text)) == ["Add", "[Mul Neg]"]
    assert kinds(fused(scoped.FuseWithinScopes(max_size=2), text)) == ["Add", "[Mul Neg]"]
    graph = parse_graph(text)
    report = PassManager("fuse-within-scopes{max-inputs=2}").run(graph)
    assert kinds(graph) == ["Add", "[Mul Neg]"] and report.stats["fuse-within-scopes.merged"] == 1
    assert "the group would have 3 inputs" in report.remarks[0].reason


def test_the_page_names_what_there_is() -> None:
    table = PAGE[PAGE.index("| method of a policy") :]
    named = re.findall(r"^\| `(\w+)", table, re.MULTILINE)
    assert {name for name in vars(Policy) if not name.startswith("_")} == set(named[:2])
    assert all(hasattr(Cluster, name) for name in named[2:])


def test_refusals_of_any_policy_are_counted_in_the_report(scoped: Any) -> None:
    graph = parse_graph(
        f"graph(%x : {T}, %y : {T}, %z : {T}):\n  %a : {T} = onnx::Add(%x, %y)\n"
        f"  %b : {T} = onnx::Mul(%a, %z)\n  %c : {T} = onnx::Neg(%b)\n  return (%c)"
    )
    model = irc.compile(graph, ["unfused", scoped.FuseWithinScopes(max_inputs=2), "dce"])
    assert fusion(model.report).startswith("1 group with 2 operators; 1 fusion rejected")
    assert model.report.pipeline.endswith("growable,fuse-within-scopes{max-inputs=2},dce")


# -- no policy makes a wrong group -------------------------------------------------


class Everything(Policy):
    """All that there is shall fuse, whatever it is."""

    def fuses(self, node: Node) -> bool:
        return True

    def refusal(self, producer: Node, cluster: Cluster) -> str | None:
        assert cluster.size == len(list(cluster.operators)) and producer not in cluster.members
        return None


class Anything(Policy):
    """What it says is drawn by lot."""

    def __init__(self, graph: Graph, seed: int) -> None:
        super().__init__(graph)
        self.random = random.Random(seed)

    def fuses(self, node: Node) -> bool:
        return self.random.random() < 0.7

    def refusal(self, producer: Node, cluster: Cluster) -> str | None:
        return "by lot" if self.random.random() < 0.3 else None


@dataclass(frozen=True)
class FuseEverything(Fuse):
    name: ClassVar[str] = "test-fuse-everything"

    def policy(self, graph: Graph) -> Policy:
        return Everything(graph)


@dataclass(frozen=True)
class FuseAnything(Fuse):
    name: ClassVar[str] = "test-fuse-anything"
    seed: int = 0

    def policy(self, graph: Graph) -> Policy:
        return Anything(graph, self.seed)


# -- what is not a policy, and no answer of one --------------------------------------


def fuse_by(made: Any) -> Fuse:
    """A fuser, the policy of which is what ``made`` gives."""

    class FuseBy(Fuse):
        name: ClassVar[str] = "test-fuse-by"

        def policy(self, graph: Graph) -> Any:
            return made(graph)

    return FuseBy()


class Bare(Policy):
    def __init__(self, graph: Graph) -> None:
        self.max_size = 8


class Odd(Policy):
    """What it answers is set by the test."""

    answers: ClassVar[dict[str, Any]] = {}

    def fuses(self, node: Node) -> Any:
        return self.answers.get("fuses", True)

    def refusal(self, producer: Node, cluster: Cluster) -> Any:
        return self.answers.get("refusal")


CHAIN = f"graph(%x : {T}):\n  %a : {T} = onnx::Neg(%x)\n  %b : {T} = onnx::Exp(%a)\n  return (%b)"


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda graph: None, "policy must return a Policy, not None"),
        (lambda graph: Policy, "policy must return a Policy, not <class"),
        (Bare, "policy must return a Policy, and Bare does not call super().__init__(graph)"),
    ],
)
def test_what_is_no_policy_is_refused(made: Any, says: str) -> None:
    with pytest.raises(Error, match=re.escape(f"pass test-fuse-by: {says}")) as caught:
        PassManager([fuse_by(made)]).run(parse_graph(CHAIN))
    assert caught.value.code == "IRC305"


class AsksForNothing(Policy):
    def fuses(self) -> bool:  # type: ignore[override]
        return True


class AsksForMore(Policy):
    def refusal(self, producer: Node, cluster: Cluster, why: str) -> str | None:  # type: ignore[override]
        return None


class HasNoAnswer(Policy):
    refusal = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (AsksForNothing, r"AsksForNothing\.fuses \(.*\.py:\d+\) must take \(node\), not \(\)"),
        (AsksForMore, r"AsksForMore\.refusal .* must take \(producer, cluster\), not \(producer, cluster, why\)"),
        (HasNoAnswer, r"HasNoAnswer\.refusal must be a function, not None"),
    ],
)
def test_policies_that_cannot_be_asked_are_refused(made: Any, says: str) -> None:
    with pytest.raises(Error, match=f"IRC305: main: pass test-fuse-by: {says}"):
        PassManager([fuse_by(made)]).run(parse_graph(CHAIN))


def test_a_pass_that_cannot_be_asked_for_its_policy_is_refused() -> None:
    @dataclass(frozen=True)
    class FuseNothing(Fuse):
        name: ClassVar[str] = "test-fuse-nothing"

        def policy(self) -> Policy:  # type: ignore[override]
            raise AssertionError("not to be called")

    with pytest.raises(Error, match=r"IRC305: .*FuseNothing\.policy \(.*\) must take \(graph\), not \(\)"):
        PassManager([FuseNothing()]).run(parse_graph(CHAIN))


@pytest.mark.parametrize(
    ("method", "answer", "place"),
    [
        *[("refusal", answer, "%a = onnx::Neg") for answer in (False, True, "", 0, ["why"])],
        *[("fuses", answer, "%b = onnx::Exp") for answer in (None, 1, "no", np.True_)],
    ],
)
def test_other_answers_of_a_policy_are_refused(
    method: str, answer: Any, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Odd, "answers", {method: answer})
    with pytest.raises(Error, match=re.escape(f"Odd.{method} must return ")) as caught:
        PassManager([fuse_by(Odd)]).run(parse_graph(CHAIN))
    assert caught.value.message.endswith(f"not {answer!r} (pass test-fuse-by)")
    assert (caught.value.code, caught.value.where) == ("IRC305", place)


PASSES = st.one_of(st.just(FuseEverything()), st.builds(FuseAnything, seed=st.integers(0, 1 << 30)))


@examples(150)
@given(programs(FAMILIES), PASSES, st.sampled_from(["", "in-place", "growable,in-place", "dce,reorder"]))
def test_any_policy_keeps_what_programs_compute(program: Program, fuse: Fuse, after: str) -> None:
    wanted = expected(program)
    graph = program.module.copy().main
    PassManager([fuse, after], create_instruments(["verify-each", "verify-alias"])).run(graph)
    wanted.check(run(program, graph))


def test_other_operators_do_join() -> None:
    text = ir("""
        x: Float(2, 3); w: Float(3, 3); k: Long(1) -> n, i
        a: Float(2, 3) = MatMul(x, w); b: Float(2, 3) = Softmax(a); v[Float(2, 1)], i[Long(2, 1)] = TopK(b, k)
        e: Float(2, 1) = Exp(v); m: Float(2, 3) = MatMul(b, w); n: Float(2, 3) = Mul(m, e)
    """)
    graph = fused(FuseEverything(), text)
    assert len(kinds(graph)) == 1
    assert not all(is_elementwise(op) or is_anchor(op) for op in operators(the_group(graph)))
    rng = np.random.default_rng(0)
    feeds = {"k": np.array([1]), **{n: rng.standard_normal(s, np.float32) for n, s in (("x", (2, 3)), ("w", (3, 3)))}}
    plain = irc.compile(parse_graph(text), "none").run(feeds)
    model = irc.compile(parse_graph(text), [FuseEverything()])
    for _ in range(3):  # the later ones in planned memory
        found = model.run(feeds)
        assert {name: value.tolist() for name, value in found.items()} == {n: v.tolist() for n, v in plain.items()}


def test_of_results_of_other_packages_in_a_group_it_is_not_known_how_they_lie_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    register(Operator("com.example.layout::Turn", "(Tensor x) -> Tensor", pointwise=True))

    @kernel("com.example.layout::Turn")
    def turn(node: Node) -> Any:
        return lambda x: np.asfortranarray(x)

    text = f"graph(%x : {T}):\n  %a : {T} = {{}}(%x)\n  %b : {T} = onnx::Relu(%a)\n  return (%b)"
    for kind, is_whole in (("com.example.layout::Turn", False), ("onnx::Neg", True)):
        graph = fused(Fuse(), text.format(kind))
        assert subgraph_of(the_group(graph)).nodes
        assert StorageOwners(analyze(graph)).owns_storage(graph.value("b")) == is_whole
