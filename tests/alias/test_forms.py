"""Nodes of a wrong form: the verifier refuses them, or the alias analysis can do with them."""

import re
from itertools import product

import pytest

from irc.alias import analyze, register_rule
from irc.alias.recorder import Recorder
from irc.alias.rules import by_kind
from irc.errors import Error
from irc.ir import Graph, Node, parse_graph
from irc.ops.signatures import kinds

KINDS = sorted(by_kind.RULES)
TYPES = ("Tensor", "int", "(Tensor, Tensor)", "Tensor[]", "Dict(str, Tensor)", "__torch__.M")
FORMS = [
    (inputs, outputs, of, to)
    for inputs, outputs in product((0, 1, 2, 6), range(3))
    for of, to in product(TYPES if inputs else ("Tensor",), TYPES if outputs else ("Tensor",))
]
"""How many inputs and outputs a node has, and of which types."""


@pytest.mark.parametrize("attributes", ["", '[name="w"]', "[value=1]"], ids=["plain", "name", "value"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_rules_meet_no_form_that_they_cannot_read(kind: str, attributes: str, every: int) -> None:
    for inputs, outputs, of, to in FORMS[::every]:
        names = [f"%i{i}" for i in range(inputs)]
        results = ", ".join(f"%o{i} : {to}" for i in range(outputs))
        graph = parse_graph(
            f"graph({', '.join(f'{name} : {of}' for name in names)}):\n"
            f"  {results}{' = ' if outputs else ''}{kind}{attributes}({', '.join(names)})\n"
            "  return ()\n"
        )
        try:
            graph.verify()
        except Error:
            _analyze_or_say_why_not(graph)
            continue
        db = analyze(graph)
        for a, b in product(db.values_in_order(), repeat=2):
            db.may_alias(a, b)


def _analyze_or_say_why_not(graph: Graph) -> None:
    try:
        analyze(graph)
    except Error as error:
        with pytest.raises(Error, match=re.escape(str(error))):
            graph.verify()


@pytest.mark.parametrize("inputs", ["", "%x", "%i, %x", "%x, %x, %x, %x, %x, %x, %x"])
@pytest.mark.parametrize("outputs", ["", "%a : Tensor = ", "%a : Tensor, %b : Tensor[] = "])
def test_operators_with_whatever_is_given_and_taken(inputs: str, outputs: str) -> None:
    """Torch's, that is: what fits none of their rows is unknown code."""
    for kind in sorted(kind for kind in kinds() if kind.startswith("aten::")):
        _analyze_or_say_why_not(
            parse_graph(f"graph(%x : Tensor, %i : int):\n  {outputs}{kind}({inputs})\n  return (%x)\n")
        )


@pytest.mark.parametrize("kind", sorted(by_kind.STATISTICS))
def test_statistics_without_all_arguments_are_unknown_code(kind: str) -> None:
    graph = parse_graph(f"graph(%x : Tensor):\n  %r : Tensor = {kind}(%x)\n  return (%r)\n")
    db = analyze(graph)
    assert db.has_writers(graph.value("x"))
    assert db.may_alias(graph.value("x"), graph.value("r"))


LOOP = """graph(%n : int):
  %r : Tensor = prim::Loop(%n)
    block0(%i : int):
      -> (%n)
  return (%r)
"""


def test_a_loop_of_a_wrong_form_ends() -> None:
    """Not verified: the analysis says what is wrong, instead of looking for what it misses again and again."""
    graph = parse_graph(LOOP)
    with pytest.raises(Error, match=r"IRC213: .*prim::Loop takes the trip count, the condition"):
        analyze(graph).locations(graph.value("r"))


def test_a_rule_that_binds_nothing_is_told() -> None:
    def nothing(rec: Recorder, node: Node) -> None:
        pass

    register_rule("third::unbound", nothing)
    graph = parse_graph("graph(%x : Tensor):\n  %r : Tensor = third::unbound(%x)\n  return (%r)\n")
    with pytest.raises(Error, match=r"IRC305: %r: .*third::unbound.*must bind every one"):
        analyze(graph).locations(graph.value("r"))
