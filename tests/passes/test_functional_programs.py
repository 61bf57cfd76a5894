"""Writes into results of views, made functional: the same results, whatever layouts tensors have."""

from typing import Any

import numpy as np
import pytest

from irc.alias import analyze
from irc.ir import parse_graph
from irc.runtime.plan import lower
from tests.functional_programs import LAYOUTS, PROGRAMS
from tests.passes.helpers import run_passes


def run(graph: Any, x: Any, *others: Any) -> list[Any]:
    given = np.lib.stride_tricks.as_strided(np.zeros(200, np.float32), x.shape, x.strides)
    given[...] = x
    return lower(graph).run([given, *others])


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_what_they_did(name):
    program = PROGRAMS[name]
    before, after = parse_graph(program.text), parse_graph(program.text)
    report = run_passes(after, "remove-mutation")
    db = analyze(after)
    writes = [node.kind for node in after.walk() if db.writes_anything(node) and not node.blocks]
    reasons = [note.reason for note in report.remarks]
    writes = [kind for kind in writes if kind != "aten::append"]
    if program.stays:
        assert len(writes) == program.writes, str(after)
        assert any(program.stays in reason for reason in reasons)
    else:
        assert not writes and not reasons, str(after)
    for layout, x in LAYOUTS.items():
        for others in ((False, 0), (True, 3)):
            wanted, found = None, None
            try:
                wanted = run(before, x, *others)
            except Exception as error:
                with pytest.raises(type(error)):
                    run(after, x, *others)
                continue
            found = run(after, x, *others)
            for value, one, other in zip(before.outputs, wanted, found, strict=True):
                np.testing.assert_array_equal(other, one, f"%{value.name} of {layout}")
