"""Random pipelines of all passes never change what a random program computes; what they do is determined."""

from hypothesis import given, note
from hypothesis import strategies as st

from irc.passes import PassManager, in_place, registry
from tests.effort import examples, tuned
from tests.passes.helpers import run_passes
from tests.programs.generator import Program, dense, lasting, programs
from tests.programs.running import expected, run

OPTIONS = {"constant-fold": ["{max-bytes=16}", "{max-growth=0}"], "fuse": ["{max-size=2}", "{max-size=5}"]}
"""Options to run passes with, besides none."""

PASSES = [f"{name}{options}" for name in registry.names() for options in ["", *OPTIONS.get(name, [])]]

passes = st.sampled_from(["default", *PASSES])
pipelines = st.lists(
    passes
    | st.tuples(st.lists(passes, min_size=1, max_size=3), st.integers(1, 3)).map(
        lambda group: f"({','.join(group[0])})*{group[1]}"
    ),
    min_size=1,
    max_size=5,
).map(",".join)


def check(program: Program, pipeline: str, *others: Program) -> None:
    """Fail unless ``pipeline`` leaves what ``program`` computes, and what it computes of the inputs of ``others``."""
    wanted = [(fed, expected(fed)) for fed in (program, *others)]
    note(f"before {pipeline}\n{program.module}")
    module = program.module.copy()
    run_passes(module, pipeline)  # verifies, checks the alias analysis, and runs again, after each pass
    note(f"after\n{module}")
    assert [v.name for v in module.main.outputs] == [v.name for v in program.graph.outputs]
    for fed, what in wanted:
        what.check(run(fed, module.main))


@examples(250)
@given(programs() | lasting, pipelines)
def test_pipelines_change_no_result(program: Program, pipeline: str) -> None:
    check(program, pipeline)


@examples(50)
@given(
    programs(("torch", "torch views", "torch writes", "layouts", "layout writes", "lists", "calls"), size=24),
    st.sampled_from(["remove-mutation", "inline,remove-mutation", "in-place,remove-mutation", "constant-fold"]),
)
def test_what_sees_memory_layouts_sees_the_same(program: Program, pipeline: str) -> None:
    check(program, pipeline)


@examples(50)
@given(
    programs(
        ("torch", "torch views", "layouts", "onnx layouts", "onnx", "onnx views", "constants", "products"), size=24
    ),
    st.sampled_from(["canonicalize", "in-place", "conv-bn-fold", "cse,fuse", "default"]),
)
def test_what_sees_memory_layouts_sees_the_same_of_onnx_operators(program: Program, pipeline: str) -> None:
    check(program, pipeline)


@examples(80)
@given(dense, pipelines)
def test_pipelines_change_no_result_whichever_way_branches_go(program: Program, pipeline: str) -> None:
    check(program, pipeline, program.refilled(1))


@examples(40)
@given(dense)
def test_what_passes_do_is_determined(program: Program) -> None:
    copies = [program.module.copy(), program.module.copy()]
    for copy in copies:
        run_passes(copy, "(constant-fold,cse,dce)*4,constant-pool")
    assert str(copies[0]) == str(copies[1])


@examples(60)
@given(dense)
def test_passes_do_not_undo_each_other(program: Program) -> None:
    report = PassManager("(canonicalize,constant-fold,constant-pool,cse,dce)*8").run(program.module.copy())
    assert not [note for note in report.remarks if "still changed" in note.reason]


@examples(60)
@given(programs(), st.sampled_from([0, 1, 3]))
def test_whatever_counts_as_many_places_passes_do_the_same(program: Program, wide: int) -> None:
    found: list[str] = []
    for many in (in_place._WIDE, wide):
        module = program.module.copy()
        with tuned("irc.passes.in_place._WIDE", many):
            PassManager("remove-mutation,in-place,remove-mutation").run(module)
        found.append(str(module))
    assert found[0] == found[1]
