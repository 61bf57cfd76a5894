"""Programs saved and loaded."""

from hypothesis import given
from hypothesis import strategies as st

import irc
from irc.passes import PassManager
from irc.runtime.model import CompiledModel
from tests.effort import examples
from tests.programs.generator import Program, programs
from tests.programs.running import check_same


@examples(80)
@given(programs(), st.booleans())
def test_a_saved_model_computes_the_same(tmp_path_factory, program: Program, optimise: bool) -> None:
    module = program.module.copy()
    if optimise:
        PassManager("canonicalize,constant-fold,cse,dce,fuse").run(module)
    model = CompiledModel(module)
    path = tmp_path_factory.mktemp("saved") / "model.irc"
    model.save(path)
    loaded = irc.load(path)
    assert [(v.name, v.type) for v in loaded.graph.inputs] == [(v.name, v.type) for v in module.main.inputs]
    feeds = {v.name: x for v, x in zip(module.main.inputs, program.inputs())}
    wanted, found = model.run(feeds), loaded.run(feeds)
    assert list(wanted) == list(found)
    check_same(list(wanted.values()), list(found.values()))
