"""However a program is run, the same comes out: in groups, in place or not, reordered, in planned memory, donated..."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from irc.passes import PassManager
from irc.runtime.model import CompiledModel
from irc.runtime.options import Options
from tests.programs.generator import Program, programs
from tests.programs.groups import Cut, cuts, regroup
from tests.programs.running import check_same, copied, examples, expected

PIPELINES = ("", "in-place", "reorder", "growable", "fuse", "reorder,in-place", "fuse,reorder,growable,in-place")
BULKS = (None, 1, 3)
RUNS = 4  # as it comes, watched for shapes, planned, planned again


def compiled(program: Program, pipeline: str, bulk: int | None, groups: list[Cut] | None = None) -> CompiledModel:
    module = program.module.copy()
    regroup(module, groups or ())
    if pipeline:
        PassManager(pipeline).run(module)
    return CompiledModel(module, options=Options(bulk=bulk))


def feeds_of(program: Program, memory: list[np.ndarray[Any, Any]]) -> dict[str, Any]:
    return {v.name: x for v, x in zip(program.graph.inputs, program.inputs(memory))}


def poison(model: CompiledModel) -> None:
    """What earlier runs left in planned memory is nothing that anybody may read."""
    for arena in model.executable.runs._arenas:
        arena.memory[:] = 0xFF


@examples(200)
@given(programs(), st.just([]) | cuts, st.sampled_from(PIPELINES), st.sampled_from(BULKS), st.data())
def test_results_do_not_depend_on_how_a_program_is_run(
    program: Program, groups: list[Cut], pipeline: str, bulk: int | None, data: st.DataObject
) -> None:
    wanted = expected(program, apart=True)
    model = compiled(program, pipeline, bulk, groups)
    earlier: list[tuple[Any, Any]] = []
    for _ in range(RUNS):
        memory = program.memory()
        feeds = feeds_of(program, memory)
        apart = [
            name
            for name, x in feeds.items()
            if not any(np.may_share_memory(x, y) for other, y in feeds.items() if other != name)
        ]
        donated = data.draw(st.sets(st.sampled_from(apart)) if apart else st.just(set()))
        lent = {name: x.copy() for name, x in feeds.items() if name not in donated}
        threads = data.draw(st.integers(1, 4))
        results = list(model.run(feeds, donate=sorted(donated), threads=threads).values())
        check_same(wanted.run.outputs, results, "outputs", wanted.largest)
        for name, kept in lent.items():
            np.testing.assert_array_equal(feeds[name], kept, err_msg="a kept input was changed")
        poison(model)
        for name in lent:
            feeds[name].fill(0)  # the caller's; of those that were donated, results may use the memory
        earlier.append((copied(results), results))
        for then, now in earlier:
            check_same(then, now, "results of an earlier run")


@examples(40)
@given(programs(), st.sampled_from(PIPELINES), st.sampled_from(BULKS), st.integers(1, 3))
def test_one_model_runs_on_several_threads_at_once(
    program: Program, pipeline: str, bulk: int | None, threads: int
) -> None:
    wanted = expected(program, apart=True)
    model = compiled(program, pipeline, bulk)

    def run(_: int) -> list[Any]:
        return list(model.run(feeds_of(program, program.memory()), threads=threads).values())

    with ThreadPoolExecutor(4) as pool:
        for results in pool.map(run, range(12)):
            check_same(wanted.run.outputs, results, "outputs", wanted.largest)
