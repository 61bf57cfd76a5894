"""Programs as text: what is printed reads back equal, and computes the same."""

from hypothesis import given

from irc.ir import parse_module, structurally_equal
from tests.effort import examples
from tests.programs.generator import Program, programs
from tests.programs.running import expected, run


@examples(150)
@given(programs())
def test_text_reads_back_and_computes_the_same(program: Program) -> None:
    module = program.module
    text = str(module)
    parsed = parse_module(text, module.weights)
    parsed.verify()
    assert str(parsed) == text
    for name, graph in module.graphs.items():
        difference = structurally_equal(graph, parsed.graphs[name])
        assert difference is None, difference
    expected(program).check(run(program, parsed.main))
