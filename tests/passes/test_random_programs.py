"""Whatever passes run, in whatever order, a program computes what it did, and changes of its inputs what it did."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from irc.ir import Graph, Module
from irc.passes import PassManager, holders
from irc.runtime.plan import lower
from tests.passes.helpers import run_passes
from tests.passes.programs import modules, programs
from tests.programs.generator import programs as any_programs

PASSES = ("inline", "constant-fold", "constant-pool", "cse", "dce", "conv-bn-fold", "reorder")
OTHERS = ("canonicalize", "shape-inference")

INPUTS = [np.array([[1, -2, 3], [-1, 2, -3]], np.float32), np.array([[0, 5, -5], [4, -4, 1]], np.float32)]


def run(graph: Graph, question: bool) -> tuple[list[Any], list[Any]]:
    inputs = [*(x.copy() for x in INPUTS), np.array(question)]
    outputs = lower(graph).run(inputs)
    return [np.copy(x) for x in outputs], inputs


def check(target: Graph | Module, pipeline: list[str]) -> None:
    note(str(target))
    before = target.copy()
    run_passes(target, ",".join(pipeline))
    note(str(target))
    old, new = (m.main if isinstance(m, Module) else m for m in (before, target))
    assert [v.name for v in new.outputs] == [v.name for v in old.outputs]
    for question in (False, True):
        wanted, found = run(old, question), run(new, question)
        for expected, got in zip(wanted[0] + wanted[1], found[0] + found[1], strict=True):
            np.testing.assert_array_equal(got, expected)


PIPELINES = st.lists(st.sampled_from(PASSES + OTHERS), min_size=1, max_size=5)
HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=200, deadline=None, suppress_health_check=HEALTH)
@given(programs(), PIPELINES)
def test_passes_keep_what_programs_compute(graph, pipeline):
    check(graph, pipeline)


@settings(max_examples=100, deadline=None, suppress_health_check=HEALTH)
@given(modules(), PIPELINES)
def test_passes_keep_what_modules_compute(module, pipeline):
    check(module, pipeline)


@settings(max_examples=40, deadline=None, suppress_health_check=HEALTH)
@given(programs())
def test_what_passes_do_is_determined(graph):
    pipeline = "(constant-fold,cse,dce)*4,constant-pool"
    copies = [graph.copy(), graph.copy()]
    for copy in copies:
        run_passes(copy, pipeline)
    assert str(copies[0]) == str(copies[1])


@settings(max_examples=60, deadline=None, suppress_health_check=HEALTH)
@given(programs())
def test_passes_do_not_undo_each_other(graph):
    report = PassManager("(canonicalize,constant-fold,constant-pool,cse,dce)*8").run(graph)
    assert not [note for note in report.refusals if "still changed" in note.reason]


@settings(max_examples=60, deadline=None, suppress_health_check=[*HEALTH, HealthCheck.function_scoped_fixture])
@given(any_programs(), st.sampled_from([0, 1, 3]))
def test_whatever_counts_as_many_places_passes_do_the_same(monkeypatch, program, wide):
    found: list[str] = []
    for many in (holders._WIDE, wide):
        module = program.module.copy()
        with monkeypatch.context() as patch:
            patch.setattr(holders, "_WIDE", many)
            PassManager("remove-mutation,in-place,remove-mutation").run(module)
        found.append(str(module))
    assert found[0] == found[1]
