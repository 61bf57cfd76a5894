"""Random programs run on NumPy: what really shares memory, and what really changes, the analysis must have said."""

from collections import Counter

from hypothesis import given

from irc.alias import AliasDb, analyze
from irc.ir import Graph, Node, Value
from tests.alias.machine import Machine, contents
from tests.alias.programs import choices, program, random_choices
from tests.effort import examples
from tests.programs.interpreter import share, share_inside

Pair = tuple[Value, Value]


class Checked(Machine):
    """A run in which every claim of the analysis is held against what happens."""

    def __init__(self, graph: Graph, db: AliasDb, numbers: list[int]) -> None:
        super().__init__(graph, numbers)
        self.db = db
        self.before_node = self._check_changes
        self.on_define = self._check_sharing

    def _check_sharing(self, value: Value) -> None:
        what = self.objects[value]
        for other, its in self.objects.items():
            if share(what, its):
                self.counts["shared"] += other is not value
                assert self.db.may_alias(value, other), self._tell(value, other)
            elif other in self.visible:
                assert not self.db.must_alias(value, other), self._tell(value, other)
            if share_inside(what, its):
                self.counts["held in common"] += 1
                assert self.db.may_contain_alias(value, other), self._tell(value, other)

    def _check_changes(self, node: Node) -> None:
        for first, then in self.after.items():
            for value in node.inputs:
                defined, before = then.get(value, (-1, b""))
                if defined == self.defined[value] and before != contents(self.objects[value]):
                    self.counts["changed"] += 1
                    assert self.db.has_writers(value), self._tell(value, value)
                    assert self.db.writes_between([value], first, node), f"{first} to {node}\n{self.graph}"

    def _tell(self, a: Value, b: Value) -> str:
        return f"%{a.name} and %{b.name} in\n{self.graph}"


def run(numbers: list[int]) -> Counter[str]:
    graph = program(numbers, opaque=False)
    machine = Checked(graph, analyze(graph), numbers[::-1])
    machine.run()
    return machine.counts


@given(choices)
@examples(150)
def test_the_analysis_is_right_about_real_memory(numbers: list[int]) -> None:
    run(numbers)


def test_the_programs_exercise_what_matters() -> None:
    counts: Counter[str] = Counter()
    for seed in range(300):
        counts += run(random_choices(seed))
    for what in (
        "shared",
        "held in common",
        "changed",
        "zero iterations",
        "one iteration",
        "several iterations",
        "branches",
    ):
        assert counts[what] >= 20, (what, counts)
