import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pytest

import irc
from irc.errors import Error
from irc.ir import Graph, parse_graph
from irc.passes import Pass, PassContext, PassManager, Repeat, create, create_instruments
from irc.passes.instruments import (
    INSTRUMENTS,
    CrashReproducer,
    Diff,
    OptimisationLimit,
    PrintAfterAll,
    PrintAfterChange,
    PrintAfterFailure,
    Timing,
    VerifyAlias,
    VerifyChanged,
    VerifyEach,
)
from tests.graphs import ir, ir_module

TEXT = ir("""
    x: Float(2) -> y
    a: Float(2) = Neg(x); b: Float(2) = Neg(x); c: Float(2) = Exp(x); y: Float(2) = Add(a, b)
""")


def custom(action: Callable[[Graph, PassContext], bool], label: str = "") -> Pass:
    """A pass that does what it is told."""

    @dataclass(frozen=True)
    class Custom:
        name: ClassVar[str] = "custom"
        label: str = ""

        def run(self, graph: Graph, ctx: PassContext) -> bool:
            return action(graph, ctx)

    return Custom(label)


def graph() -> Graph:
    return parse_graph(TEXT)


def test_what_is_wrong_with_a_piece_of_text_is_shown_as_in_text() -> None:
    with pytest.raises(Error, match=r"no pass is called 'csse' \(did you mean 'cse'\?\)(.|\n)*\^") as error:
        PassManager(["dce", "csse"])
    assert error.value.code == "IRC301"


def test_repeat_says_when_it_gives_up():
    def flip(g: Graph, ctx: PassContext) -> bool:
        first, second = list(g.nodes)[:2]
        first.move_after(second)
        return True

    group = Repeat((custom(flip, "1"), custom(flip, "2")), 3)
    report = PassManager([group]).run(graph())
    assert len(report.passes) == 6
    assert "round 3 still changed the graph" in str(report.remarks[-1])


def test_every_graph_of_a_module_is_done():
    module = ir_module("""
        x: Tensor -> y
        f: Function = prim.Constant(name="f"); y = prim.CallFunction(f, x)

        f | x: Tensor -> x
        a = Neg(x)
    """)
    report = PassManager("dce,inline,dce").run(module)
    assert report.stats["dce.erased"] == 1
    assert [run.name for run in report.passes] == ["dce", "inline", "dce"]
    assert list(module.graphs) == ["main"]


# -- instruments -----------------------------------------------------------------


def output(instrument_class: type, pipeline: str = "cse,dce,cse") -> str:
    stream = io.StringIO()
    PassManager(pipeline, [instrument_class(stream)]).run(graph())
    return stream.getvalue()


def test_print_after_all():
    text = output(PrintAfterAll)
    assert [row for row in text.splitlines() if row.startswith("# after")] == [
        "# after cse",
        "# after dce",
        "# after cse (no change)",
    ]
    assert text.count("graph(%x") == 3


def test_print_after_change():
    text = output(PrintAfterChange)
    assert [row for row in text.splitlines() if row.startswith("# after")] == ["# after cse", "# after dce"]
    assert text.count("onnx::Exp") == 1


def test_diff():
    rows = output(Diff).splitlines()
    assert "-  %b : Float(2) = onnx::Neg(%x)" in rows
    assert "-  %c : Float(2) = onnx::Exp(%x)" in rows
    assert "+  %y : Float(2) = onnx::Add(%a, %a)" in rows


def test_timing():
    rows = [row.split() for row in output(Timing).splitlines()]
    assert [row[0] for row in rows] == ["pass", "cse", "dce", "cse", "total"]
    assert [row[-1] == "changed" for row in rows[1:-1]] == [True, True, False]
    assert float(rows[-1][1]) == pytest.approx(sum(float(row[1]) for row in rows[1:-1]), abs=0.02)


def test_instruments_by_name(capsys):
    assert [type(i) for i in create_instruments(["timing", "verify-each"])] == [Timing, VerifyEach]
    assert len(create_instruments(list(INSTRUMENTS))) == len(INSTRUMENTS)
    with pytest.raises(Error, match=r"IRC301.*no instrument is called 'timming' \(did you mean 'timing'\?\)"):
        create_instruments(["timming"])
    PassManager("cse", create_instruments(["timing"])).run(graph())
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "total" in captured.err


def test_verify_each_looks_at_what_it_is_given():
    broken = graph()
    next(iter(broken.nodes)).move_after(list(broken.nodes)[-1])
    with pytest.raises(Error, match="IRC2"):
        PassManager("", [VerifyEach()]).run(broken)


def test_verify_alias():
    def untold(g: Graph, ctx: PassContext) -> bool:
        ctx.alias_db(g).location_set(g.value("c"))
        g.value("c").node.erase()
        return True

    with pytest.raises(Error, match=r"after pass custom: .*no longer fits the graph"):
        PassManager([custom(untold)], [VerifyAlias()]).run(graph())


def test_verify_changed():
    with pytest.raises(Error, match=r"IRC305.*custom reports a change, but there is none"):
        PassManager([custom(lambda g, ctx: True)], [VerifyChanged()]).run(graph())

    def rename(g: Graph, ctx: PassContext) -> bool:
        g.value("a").name = "renamed"
        return False

    with pytest.raises(Error, match=r"IRC305.*custom reports no change, but there is one"):
        PassManager([custom(rename)], [VerifyChanged()]).run(graph())

    def grow(g: Graph, ctx: PassContext) -> bool:
        next(iter(g.nodes)).name += "x"
        return True

    with pytest.raises(Error, match=r"IRC305.*custom is not idempotent:\n"):
        PassManager([custom(grow)], [VerifyChanged()]).run(graph())

    def claim(g: Graph, ctx: PassContext) -> bool:
        next(iter(g.nodes)).name = "changed"
        return True

    with pytest.raises(Error, match=r"IRC305.*custom reports a change again, but there is none$"):
        PassManager([custom(claim)], [VerifyChanged()]).run(graph())


def fail(g: Graph, ctx: PassContext) -> bool:
    g.value("c").node.erase()
    raise Error("IRC399", "no more")


def test_after_a_failure(tmp_path):
    stream = io.StringIO()
    path = tmp_path / "crash.ir"
    with pytest.raises(Error, match="IRC399"):
        PassManager([custom(fail)], [PrintAfterFailure(stream), CrashReproducer(path, stream)]).run(graph())
    printed = stream.getvalue()
    assert printed.startswith("# custom failed: IRC399: no more\ngraph(")
    assert "onnx::Exp" not in printed
    saved = path.read_text()
    assert saved.startswith("# irc opt crash.ir -p 'custom'\n")
    assert str(parse_graph(saved)) == str(graph())


def test_a_reproducer_that_cannot_be_saved_does_not_hide_why_the_pass_failed(tmp_path):
    stream = io.StringIO()
    with pytest.raises(Error, match="IRC399"):
        PassManager([custom(fail)], [CrashReproducer(tmp_path / "nowhere" / "crash.ir", stream)]).run(graph())
    assert stream.getvalue().startswith("# custom failed; the graph before it cannot be saved: IRC501")


@pytest.mark.parametrize("limit", range(6))
def test_optimisation_limit(limit):
    stream = io.StringIO()
    g = graph()
    # One merge by cse; then dce erases %c.
    report = PassManager("cse,dce", [OptimisationLimit(limit, stream)]).run(g)
    done = report.stats["cse.merged"] + report.stats["dce.erased"]
    assert done == min(limit, 2)
    g.verify()
    last = {0: "none", 1: "cse at %b = onnx::Neg"}.get(limit, "dce at %c = onnx::Exp")
    assert stream.getvalue() == f"# {done} transformations; the last: {last}\n"


def test_a_pipeline_of_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match="passes and their names, not 3"):
        PassManager([3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"give Dce\(\)"):
        PassManager([type(create("dce"))])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"give Dce\(\)"):
        PassManager([Repeat((type(create("dce")),), 2)])  # type: ignore[arg-type]
    for other in (None, create("dce")):
        with pytest.raises(TypeError, match="text or a sequence of passes"):
            PassManager(other)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="names of them, not 3"):
        PassManager("dce", [3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"a sequence of objects or names: \['verify-each'\]"):
        PassManager("cse", "verify-each")


def test_what_passes_cannot_run_on_is_refused() -> None:
    for target in (TEXT, None, [graph()]):
        with pytest.raises(TypeError, match="passes run on a Graph or a Module, not on "):
            PassManager("dce").run(target)  # type: ignore[arg-type]


def test_a_pass_that_is_no_frozen_dataclass_is_refused_where_it_is_given() -> None:
    class Plain:
        name: ClassVar[str] = "plain"

        def run(self, graph: Graph, ctx: PassContext) -> bool:
            raise ValueError("never comes so far")

    @dataclass
    class Thawed(Plain):
        pass

    @dataclass(frozen=True)
    class Listing(Plain):
        size: int

    @dataclass(frozen=True)
    class Odd(Plain):
        sizes: list[int]

    with pytest.raises(TypeError, match=r"not a pass: Plain: it is not decorated with @dataclass\(frozen=True\)"):
        PassManager([Plain()], ["print-after-failure"])
    with pytest.raises(TypeError, match=r"not a pass: Thawed: it is not decorated with @dataclass\(frozen=True\)"):
        PassManager([Thawed()])
    with pytest.raises(TypeError, match=r"not a pass: Odd: its option 'sizes' is of type list\[int\], not bool, int"):
        PassManager([Odd([1])])
    with pytest.raises(TypeError, match=r"options can be hashed.*unhashable type: 'list'"):
        PassManager([Listing([1])])  # type: ignore[reportArgumentType]  # the types of options are not looked after


def test_instruments_may_be_given_by_name(capsys) -> None:
    PassManager("dce", ["timing"]).run(graph())
    assert "dce" in capsys.readouterr().err
    with pytest.raises(Error, match="no instrument is called 'timin'"):
        PassManager("dce", ["timin"])


@pytest.mark.parametrize("answer", [None, 1, "yes"])
def test_a_pass_that_does_not_say_whether_it_changed_anything_is_refused(answer) -> None:
    with pytest.raises(Error, match=r"^IRC305: .*run must return whether it changed the graph"):
        PassManager([custom(lambda graph, ctx: answer)]).run(graph())


def renames_the_output(graph: Graph) -> None:
    old = graph.outputs[0]
    new = graph.create("onnx::Add", graph.outputs[0].node.inputs, [old.type])
    new.insert_before(old.node)
    old.replace_all_uses_with(new.output)
    old.node.erase()


ENDS = {
    "outputs and their names: %0 stands where %y was": renames_the_output,
    "outputs and their names: nothing stands where %y was": lambda graph: graph.set_outputs([]),
    "outputs and their names: %a stands where nothing was": lambda graph: graph.set_outputs(
        [*graph.outputs, graph.value("a")]
    ),
    "inputs and their names: %x.1 stands where %x was": lambda graph: graph.rename(graph.value("a"), "x"),
    "inputs and their names: %z stands where nothing was": lambda graph: graph.add_input(graph.inputs[0].type, "z"),
}


@pytest.mark.parametrize("says", ENDS)
def test_a_pass_that_does_not_keep_what_a_model_is_called_by_is_refused(says) -> None:
    spoil = custom(lambda graph, ctx: ENDS[says](graph) is not graph)
    with pytest.raises(Error, match=re.escape(f"pass custom must keep {says}")) as caught:
        irc.compile(graph(), ["cse", spoil], check=True)
    assert caught.value.code == "IRC305"
    assert PassManager([spoil]).run(graph()).changed  # a graph alone is the business of whoever runs passes on it
