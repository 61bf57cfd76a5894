"""Random pipelines of all passes never change what a random program computes."""

from __future__ import annotations

from hypothesis import given, note
from hypothesis import strategies as st

from irc.passes import registry
from tests.passes.helpers import run_passes
from tests.programs.generator import Program, programs
from tests.programs.running import examples, expected, run

OPTIONS = {
    "constant-fold": ["{max-bytes=16}", "{max-growth=0}"],
    "fuse": ["{max-size=2}", "{max-size=5}"],
}
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


@examples(250)
@given(programs(), pipelines)
def test_pipelines_change_no_result(program: Program, pipeline: str) -> None:
    wanted = expected(program)
    note(f"before {pipeline}\n{program.module}")
    module = program.module.copy()
    run_passes(module, pipeline)  # verifies, checks the alias analysis, and runs again, after each pass
    note(f"after\n{module}")
    assert [v.name for v in module.main.outputs] == [v.name for v in program.graph.outputs]
    wanted.check(run(program, module.main))
