"""Why something was not fused, not in place, copied or kept: the blocker is the true one, and the remedy works.

Each case is a small graph. The test applies the remedy by its data alone, compiles again, and the remark is gone; runs
give the same results, and count fewer copies, or more results in place, where the remark promised that.
"""

import re
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irc
from irc.ir import Graph, clone_node, parse_graph
from irc.runtime.report import Report
from irc.support.remarks import COPIED, MOST_REMARKS, NOT_FUSED, NOT_IN_PLACE, PEAK, Remark, Remedy
from irc.tools.explain import remarks
from tests.alias.test_scale import lines
from tests.graphs import ir, ir_graph


@dataclass(frozen=True)
class Case:
    """A graph, how it is compiled, and the remark that is expected.

    Attributes:
        text: of the graph.
        what: the remark is about.
        where: it begins with this.
        blocker: the value or node in the way.
        action: of the remedy; empty if there is none.
        pipeline: of passes.
        donated: inputs that the caller gives up.
        sizes: of named dimensions.
        declared: the type that the remedy ``declare`` gives.
    """

    text: str
    what: str
    where: str
    blocker: str
    action: str = ""
    pipeline: str = "default"
    donated: frozenset[str] = frozenset()
    sizes: dict[str, int] = field(default_factory=dict)
    declared: str = ""

    def model(self) -> irc.CompiledModel:
        return irc.compile(self.graph(), self.pipeline, sizes=self.sizes, backend="numpy")

    def graph(self) -> Graph:
        return parse_graph(self.text)

    def remark(self, model: irc.CompiledModel) -> Remark | None:
        found = [r for r in remarks(model, self.donated) if r.what == self.what and r.where.startswith(self.where)]
        return next((r for r in found if r.blocker == self.blocker), found[0] if found else None)


def apply(remedy: Remedy, case: Case) -> Case:
    """``case`` after the remedy."""
    targets, value, graph = remedy.targets, remedy.value, case.graph()
    nodes = {output.name: node for node in graph.nodes for output in node.outputs}
    match remedy.action:
        case "donate":
            return replace(case, donated=case.donated | {*targets})
        case "fix-sizes":
            return replace(case, sizes={**case.sizes, **dict.fromkeys(targets, int(value) if value.isdigit() else 3)})
        case "set-option":
            given = rf"{targets[0]}(\{{[^}}]*\}})?"
            return replace(case, pipeline=re.sub(given, f"{targets[0]}{{{value}}}", case.pipeline))
        case "add-pass" if value:
            return replace(case, pipeline=case.pipeline.replace(value, f"{targets[0]},{value}"))
        case "add-pass":
            return replace(case, pipeline=",".join(filter(None, (case.pipeline, targets[0]))))
        case "declare":
            text = case.text
            for name in targets:
                text = text.replace(f"%{name} : Tensor", f"%{name} : {case.declared}")
            return replace(case, text=text)
        case "move-before":
            for name in targets:
                nodes[name].move_before(nodes[value])
        case "split-use":
            (user,) = targets
            second = clone_node(nodes[value], graph, {v: v for v in nodes[value].inputs})
            second.insert_before(nodes[user])
            nodes[user].set_inputs([second.output if v.name == value else v for v in nodes[user].inputs])
        case "leave-out":
            graph.set_outputs([v for v in graph.outputs if v.name not in targets])
        case "return-too":
            graph.set_outputs([*graph.outputs, *(graph.value(name) for name in targets)])
        case _:
            raise AssertionError(remedy)
    graph.verify()
    return replace(case, text=str(graph))


EXPLAINED = """
== in place: the caller keeps the operand | not in place | %a | x | donate | none
x: Float(8) -> b
a: Float(8) = Relu(x); b: Float(8) = Cos(a)
== in place: the operand is used later | not in place | %b | c | move-before | none
x: Float(8, 1); y: Float(1, 8) -> b, c
a: Float(8, 8) = MatMul(x, y); b: Float(8, 8) = Relu(a); c: Float() = ReduceSum(a, keepdims=0)
== in place: sizes may differ | not in place | %c | a | fix-sizes | in-place
x: Float(n, 4); y: Float(m, 4) -> c
a: Float(n, 4) = Softmax(x); b: Float(m, 4) = Softmax(y); c = Add(a, b)
== in place: types are not known | not in place | %b | a | declare | shape-inference,in-place | declared=Float(4)
x, y: Tensor -> b
a = tanh(x); b = add(a, y, 1)
== boundary: an input is returned | copied | output %y | x | donate | default
x: Float(2, 3) -> y
y: Float(3, 2) = Reshape(x, [3, 2])
== boundary: an input is written | copied | input %x | y | donate | default
x: Float(2) -> z
y: Float(2) = relu_(x); z: Float(2) = exp(y)
== boundary: two outputs share memory | copied | output %z | y | leave-out | default
x: Float(2, 3) -> y, z
y: Float(2, 3) = Exp(x); z: Float(6) = Reshape(y, [6])
== cache: the caller keeps it | copied | %all | past | donate | default
past: Float(1, n, 4); new: Float(1, 1, 4) -> all
all: Float(1, m, 4) = Concat(past, new, axis=1)
== cache: the pass is missing | copied | %all = onnx::Concat | past | add-pass | cse | donated=past
past: Float(1, n, 4); new: Float(1, 1, 4) -> all
all: Float(1, m, 4) = Concat(past, new, axis=1)
== cache: it does not come back | copied | %all = onnx::Concat | past | return-too | default | donated=past
past: Float(1, n, 4); new: Float(1, 1, 4) -> y
all: Float(1, m, 4) = Concat(past, new, axis=1); y: Float(1, 1, 4) = ReduceSum(all, keepdims=1)
== cache: it is written in place | copied | %all | w | - | default | donated=past
past: Float(1, 2, 4); new: Float(1, 1, 4) -> all
l: "Tensor[]" = prim.ListConstruct(past, new); all: Float(1, 3, 4) = cat(l, 1); w: Float(1, 3, 4) = relu_(all)
== cache: types are not known | copied | %all | past | declare | default | donated=past | declared=Float(1, n, 4)
graph(%past : Tensor, %new : Float(1, 1, 4)):
  %1 : int = prim::Constant[value=1]()
  %l : Tensor[] = prim::ListConstruct(%past, %new)
  %all : Tensor = aten::cat(%l, %1)
  return (%all)
== view: a transposed tensor is reshaped | copied | %y | t | fix-sizes | none
x: Float(n, 4, 5) -> y
e: Float(n, 4, 5) = Softmax(x); t: Float(4, n, 5) = Transpose(e, perm=[1, 0, 2]); y: Float(m) = Reshape(t, [-1])
== cse: what they read is written in between | not merged | %c | w | add-pass | cse
x: Float(2) -> d
a: Float(2) = exp(x); b: Float(2) = sin(a); w: Float(2) = neg_(b); c: Float(2) = sin(a); d: Float(2) = add(w, c, 1)
== cse: a view of what they read is written in between | not merged | %c | w | add-pass | cse
x: Float(2, 2) -> d
a: Float(2, 2) = exp(x); v: Float(2, 2) = t(a); b: Float(2, 2) = sin(a); w: Float(2, 2) = neg_(v)
c: Float(2, 2) = sin(a); d: Float(2, 2) = add(b, c, 1)
== fold: the result is too large | not folded | %t | - | set-option | constant-fold{max-bytes=100}
x: Float(64) -> y
t: Float(64) = Tile([1.0, 2.0, 3.0, 4.0], [16]); y: Float(64) = Add(x, t)
== fold: the model would grow | not folded | %t | - | set-option | constant-fold{max-growth=0}
x: Float(64) -> y
t: Float(64) = Tile([1.0, 2.0, 3.0, 4.0], [16]); y: Float(64) = Add(x, t)
== fold: the result is written | not folded | %r | w | add-pass | constant-fold
x: Float(3) -> y
r = arange(3, None, None, None, None); w = neg_(r); y = add(x, w, 1)
== fuse: memory is written in between | not fused | %a | w | add-pass | fuse
x: Float(4) -> d
a: Float(4) = mul(x, x); b: Float(4) = relu(a); w: Float(4) = neg_(a); c: Float(4) = exp(b)
d: Float(4) = add(c, a, 1)
== fuse: an operator in between needs the result | not fused | %a | m | split-use | fuse
x: Float(4, 4) -> y
a: Float(4, 4) = Relu(x); m: Float(4, 4) = Transpose(a, perm=[1, 0]); y: Float(4, 4) = Add(a, m)
== fuse: the group would be too large | not fused | %a | - | set-option | fuse{max-size=2}
x: Float(4) -> c
a: Float(4) = Relu(x); b: Float(4) = Neg(a); c: Float(4) = Exp(b)
== fuse: rows may be others | not fused | %a | c | fix-sizes | shape-inference,fuse
x: Float(n, 4); y: Float(m, 4) -> c
a: Float(n, 4) = Softmax(x, axis=-1); b: Float(m, 4) = Softmax(y, axis=-1); c = Add(a, b)
== fuse: a group has one product | not fused | %b | c | - | fuse
x: Float(4, 4) -> d
a: Float(4, 4) = MatMul(x, x); b: Float(4, 4) = Relu(a); c: Float(4, 4) = MatMul(b, x); d: Float(4, 4) = Relu(c)
== peak: an operator could run earlier | peak memory | - | a | move-before | none
x: Float(64, 64) -> y
a: Float(64, 64) = Softmax(x); b: Float(64, 64) = MatMul(x, x); c: Float(64, 64) = MatMul(b, x)
s: Float() = ReduceSum(a, keepdims=0); y: Float(64, 64) = Add(c, s)
== peak: sizes are not known | peak memory | - | x | fix-sizes | none
x: Float(n, 64) -> a
a: Float(n, 64) = Softmax(x)
"""
"""Name | what the remark is about | where | blocker | action | pipeline | more; then the graph, as for `ir`."""


def read(text: str) -> dict[str, Case]:
    found: dict[str, Case] = {}
    for section in text.split("\n== ")[1:]:
        head, body = section.split("\n", 1)
        name, what, where, blocker, action, pipeline, *more = (
            "" if cell == "-" else cell for cell in head.split(" | ")
        )
        options = dict(option.split("=") for option in more)
        donated = frozenset(options.get("donated", "").split())
        declared = options.get("declared", "")
        body = body if body.startswith("graph(") else str(ir_graph(body))
        found[name] = Case(body, what, where, blocker, action, pipeline, donated, declared=declared)
    return found


CASES = read(EXPLAINED)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_blocker_is_the_true_one_and_the_remedy_works(case: Case) -> None:
    model = case.model()
    remark = case.remark(model)
    assert remark is not None, [*map(str, model.remarks)]
    assert (remark.blocker, remark.remedy.action if remark.remedy else "") == (case.blocker, case.action), remark
    if not remark.remedy:
        return
    after = apply(remark.remedy, case)
    other = after.model()
    left = after.remark(other)
    assert left is None or left.reason != remark.reason
    assert left is None or case.what in (NOT_FUSED, PEAK), left
    before, now = _run(model, case), _run(other, after)
    if case.what == NOT_IN_PLACE and "in-place" in case.pipeline:
        kinds = [next(n.kind for n in m.graph.nodes if f"%{n.output.name}" == case.where) for m in (model, other)]
        assert kinds[1] == f"{kinds[0]}_"
    elif case.what == NOT_IN_PLACE:
        assert before.in_place < now.in_place
    elif "%all" in case.where:
        assert [_extends(m, c.donated) for m, c in ((model, case), (other, after))] == [False, True]
    elif "put" in case.where:
        assert before.copies == 1 > now.copies


def _feeds(model: irc.CompiledModel) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes = {a.name: [d if isinstance(d, int) else 3 for d in a.type.shape or (1, 2, 4)] for a in model.inputs}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def _run(model: irc.CompiledModel, case: Case) -> Any:
    feeds = _feeds(model)
    model.run(feeds, donate=case.donated & feeds.keys())
    return model.counters


def _extends(model: irc.CompiledModel, donated: frozenset[str]) -> bool:
    """Whether the cache stays where it is from the second run on."""
    feeds, made = _feeds(model), None
    for _ in range(3):
        before, results = feeds["past"], model.run(feeds, donate=donated)
        made = results.get("all")
        feeds = {**_feeds(model), "past": made}
        if made is None:
            return False
    return np.shares_memory(before, made)


def test_a_cache_that_the_caller_keeps_is_told_of_once() -> None:
    model = CASES["cache: the caller keeps it"].model()
    assert [remark.where for remark in model.remarks if remark.what == COPIED] == ["%all = irc::append_"]


def _chain(n: int) -> Graph:
    """Writes between equal operators, and operands that are used later."""
    text = ["graph(%x : Float(64)):", "  %one : int = prim::Constant[value=1]()", "  %a0 : Float(64) = aten::exp(%x)"]
    for i in range(n):
        text += [
            f"  %b{i} : Float(64) = aten::sin(%a{i})",
            f"  %w{i} : Float(64) = aten::neg_(%a{i})",
            f"  %c{i} : Float(64) = aten::sin(%a{i})",
            f"  %r{i} : Float(64) = aten::relu(%b{i})",
            f"  %s{i} : Float(64) = aten::add(%r{i}, %b{i}, %one)",
            f"  %a{i + 1} : Float(64) = aten::add(%c{i}, %s{i}, %one)",
        ]
    return parse_graph("\n".join([*text, f"  return (%a{n})"]))


def test_finding_out_takes_time_linear_in_the_size_of_the_graph() -> None:
    models = [irc.compile(_chain(n), "cse,fuse", backend="numpy") for n in (30, 120)]
    counts = [lines(partial(remarks, model)) for model in models]
    assert len(models[0].remarks) >= 3 * 30
    assert counts[1] <= 4.6 * counts[0], counts


def test_there_are_not_more_remarks_than_somebody_reads() -> None:
    text = [f"  %b{i} : Float(8) = onnx::Relu(%x)" for i in range(MOST_REMARKS + 5)]
    results = ", ".join(f"%b{i}" for i in range(MOST_REMARKS + 5))
    model = irc.compile(parse_graph("\n".join(["graph(%x : Float(8)):", *text, f"  return ({results})"])), "in-place")
    assert len(model.report.remarks) == MOST_REMARKS
    assert model.report.stats["in-place.remarks-left-out"] == 5
    assert MOST_REMARKS <= len(model.remarks) <= 2 * MOST_REMARKS


def test_remarks_survive_a_file(tmp_path: Path) -> None:
    model = CASES["fuse: memory is written in between"].model()
    model.save(tmp_path / "m.irc")
    found = irc.load(tmp_path / "m.irc").remarks
    assert found == model.remarks
    assert any(remark.remedy is not None and remark.aliasing for remark in found)


def test_reports_of_earlier_files_are_read() -> None:
    old = {"name": "m", "refusals": [{"pass_name": "fuse", "where": "%a", "reason": "too large"}]}
    assert Report.from_dict(old).remarks == [Remark("fuse", "%a", "too large")]


def test_what_a_later_pass_removed_is_not_told_of() -> None:
    text = ir("x: Float(4)", "a: Float(4) = Cos(x); b: Float(4) = Neg(x); c: Float(4) = Softmax(b)", "a")
    model = irc.compile(parse_graph(text), "in-place,dce")
    assert [remark.where for remark in model.report.remarks if remark.where.startswith("%b")] == ["%b = onnx::Neg"]
    assert not [remark for remark in model.remarks if remark.where.startswith("%b")]
