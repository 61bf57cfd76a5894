"""However a program is run, the same comes out: in groups, in place or not, reordered, in planned memory, donated..."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from irc.ir import Value
from irc.ops.axes import CONCAT
from irc.passes import PassManager
from irc.runtime.model import CompiledModel
from tests.effort import examples
from tests.programs.generator import Program, programs
from tests.programs.groups import Cut, cuts, regroup
from tests.programs.running import check_same, copied, expected

PIPELINES = ("", "in-place", "reorder", "growable", "fuse", "reorder,in-place", "fuse,reorder,growable,in-place")
FUSING = ("fuse", "fuse,reorder,growable,in-place", "reorder")
pointwise = programs(("onnx", "onnx", "onnx", "products", "constants"), size=30, dense=True)
"""Programs whose groups are large."""
concats = programs(("onnx", "onnx views", "onnx writes", "branches", "concats", "concats"), size=24, dense=True)
"""Programs with many Concats: of what is made for them, views, inputs, what is read or written later, outputs."""
anything = programs() | pointwise | concats | concats

RUNS = 4  # as it comes, watched for shapes, planned, planned again


def compiled(program: Program, pipeline: str, groups: list[Cut] | None = None) -> CompiledModel:
    module = program.module.copy()
    regroup(module, groups or ())
    if pipeline:
        PassManager(pipeline).run(module)
    return CompiledModel(module)


def feeds_of(program: Program, memory: list[np.ndarray[Any, Any]]) -> dict[str, Any]:
    return {v.name: x for v, x in zip(program.graph.inputs, program.inputs(memory))}


def placed(model: CompiledModel) -> Iterator[Value]:
    """The values that have places in planned memory."""
    for plan in model.runs.plans():
        yield from plan.place_of


def poison(model: CompiledModel) -> None:
    """What earlier runs left in planned memory is nothing that anybody may read."""
    for arena in model.runs._arenas:
        arena.memory[:] = 0xFF


@examples(200)
@given(anything, st.just([]) | cuts, st.sampled_from(PIPELINES), st.data())
def test_results_do_not_depend_on_how_a_program_is_run(
    program: Program, groups: list[Cut], pipeline: str, data: st.DataObject
) -> None:
    check_runs(program, compiled(program, pipeline, groups), data.draw)


def check_runs(program: Program, model: CompiledModel, draw: Callable[[st.SearchStrategy[Any]], Any]) -> Counter[str]:
    """Run ``model``, which ``program`` has been compiled to, several times; how often it did what."""
    wanted = expected(program, apart=True)
    did: Counter[str] = Counter()
    earlier: list[tuple[Any, Any]] = []
    donated: set[str] = set()
    for again in [False] + [True] * (RUNS - 1):
        memory = program.memory()
        feeds = feeds_of(program, memory)
        apart = [
            name
            for name, x in feeds.items()
            if not any(np.may_share_memory(x, y) for other, y in feeds.items() if other != name)
        ]
        if not (again and draw(st.booleans())):  # else as the run before: only what comes again is planned
            donated = draw(st.sets(st.sampled_from(apart)) if apart else st.just(set()))
        lent = {name: x.copy() for name, x in feeds.items() if name not in donated}
        results = list(model.run(feeds, donate=sorted(donated)).values())
        check_same(wanted.run.outputs, results, "outputs", wanted.largest)
        for name, kept in lent.items():
            np.testing.assert_array_equal(feeds[name], kept, err_msg="a kept input was changed")
        poison(model)
        for name in lent:
            feeds[name].fill(0)  # the caller's; of those that were donated, results may use the memory
        earlier.append((copied(results), results))
        for then, now in earlier:
            check_same(then, now, "results of an earlier run")
        counters = model.counters
        did["planned"] += counters.planned > 0
        did["concats without copies"] += any(v.node.kind == CONCAT for plan in model.runs.plans() for v in plan.over)
        did["planned inside of groups"] += any(v.node.graph is not model.graph for v in placed(model))
    return did


def test_random_programs_run_in_all_ways() -> None:
    """Of 100 programs, always the same, many lie in planned memory: else the tests here would tell little.

    The number of programs does not follow `EXAMPLES`: of a quarter of them, too few are planned to tell.
    """
    did: Counter[str] = Counter()

    @settings(examples(100), max_examples=100, derandomize=True, database=None)
    @given(anything, st.just([]) | cuts, st.sampled_from(FUSING), st.data())
    def run(program: Program, groups: list[Cut], pipeline: str, data: st.DataObject) -> None:
        did.update([*+check_runs(program, compiled(program, pipeline, groups), data.draw)])

    run()
    assert did["planned"] >= 10, did
    assert did["planned inside of groups"] >= 5, did
    assert did["concats without copies"] >= 1, did


@examples(40)
@given(programs(), cuts, st.sampled_from(PIPELINES))
def test_one_model_runs_on_several_threads_at_once(program: Program, groups: list[Cut], pipeline: str) -> None:
    wanted = expected(program, apart=True)
    model = compiled(program, pipeline, groups)

    def run(_: int) -> list[Any]:
        return list(model.run(feeds_of(program, program.memory())).values())

    with ThreadPoolExecutor(4) as pool:
        for results in pool.map(run, range(12)):
            check_same(wanted.run.outputs, results, "outputs", wanted.largest)
