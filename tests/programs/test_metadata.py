"""Random programs that change shapes and strides in place: what is one tensor, and that passes see the difference."""

from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from irc.alias import must
from irc.passes.rewriter import Rewriter
from tests.effort import examples
from tests.programs.generator import Program, turning
from tests.programs.interpreter import interpret
from tests.programs.soundness import Soundness
from tests.programs.test_passes import check, pipelines


@examples(60)
@given(turning, pipelines)
def test_pipelines_change_no_result(program: Program, pipeline: str) -> None:
    check(program, pipeline)


@examples(60)
@given(turning)
def test_the_analysis_is_right_about_identity(program: Program) -> None:
    watch(program)


def watch(program: Program) -> Soundness:
    watcher = Soundness(program.module)
    interpret(program.graph, program.inputs(), watcher)
    return watcher


def drawn(count: int) -> settings:
    """So many programs, always the same ones, none of which is made smaller."""
    slow = list(HealthCheck)
    return settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=slow
    )


def test_what_these_programs_do() -> None:
    seen: dict[str, int] = {}

    @seed(1)
    @drawn(12)
    @given(turning)
    def count(program: Program) -> None:
        for what, n in watch(program).seen.items():
            seen[what] = seen.get(what, 0) + n

    count()
    assert all(seen.get(what, 0) > 50 for what in ("must", "same", "metadata", "shared", "writes")), seen


def _memory_is_enough(self: Rewriter, a, b) -> bool:
    return self.db.must_alias(a, b)


MISTAKES = {
    "two tensors of one memory are one": lambda: patch.object(Rewriter, "are_alike", _memory_is_enough),
    "views are the tensor": lambda: patch.dict(must._COVERS, {"=": must.Cover.SAME}),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_caught(name: str) -> None:
    def examine() -> None:
        @seed(1)
        @drawn(200)
        @given(turning)
        def run(program: Program) -> None:
            watch(program)
            check(program, "cse")

        run()

    with MISTAKES[name](), pytest.raises(AssertionError):
        examine()
