"""Whatever is put into groups computes what it did: groups that the fuser did not make are everybody's."""

from hypothesis import given, note
from hypothesis import strategies as st

from tests.effort import examples
from tests.passes.helpers import run_passes
from tests.programs.generator import Program, lasting, programs
from tests.programs.groups import Cut, cuts, regroup
from tests.programs.running import expected, run
from tests.programs.test_fuser import FAMILIES
from tests.programs.test_passes import PASSES

FUSE = ("fuse", "fuse,dce", "fuse{max-size=5}", "default")
pipelines = st.sampled_from(FUSE) | st.lists(st.sampled_from(PASSES), min_size=1, max_size=3).map(",".join)


@examples(200)
@given(programs(FAMILIES) | programs() | lasting, cuts, pipelines)
def test_groups_change_no_result(program: Program, groups: list[Cut], pipeline: str) -> None:
    wanted = expected(program)
    module = program.module.copy()
    regroup(module, groups)
    module.verify()
    note(f"before {pipeline}\n{module}")
    wanted.check(run(program, module.main))
    run_passes(module, pipeline)  # verifies, checks the alias analysis, and runs again, after each pass
    note(f"after\n{module}")
    wanted.check(run(program, module.main))
