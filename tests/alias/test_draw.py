"""What an analysis looks like as text, dot and networkx graph."""

from tests.alias.helpers import Case
from tests.effort import Spy
from tests.graphs import ir

TEXT = ir("""
    x: Tensor -> w
    a = relu(x); l: "Tensor[]" = prim.ListConstruct(a); lonely = relu(x); e = __getitem__(l, 0); w = relu_(e)
""")


def test_text() -> None:
    assert str(Case(TEXT).db).splitlines() == [
        "%a : Tensor  ->  temporary %a : Tensor  (written)",
        "%l : Tensor[]  ->  temporary %l : Tensor[]  (written)",
        "    holds temporary %a : Tensor",
        "%e : Tensor  ->  temporary %a : Tensor  (written)",
        "%w : Tensor  ->  temporary %a : Tensor  (written)",
        "%w = aten::relu_(%e)  writes  temporary %a : Tensor",
        "memory of its own, which nothing shares or writes:  %x, %lonely",
    ]


def test_text_names_some_of_very_many_values() -> None:
    steps = "".join(f"  %v{i} : Tensor = aten::relu(%x)\n" for i in range(50))
    (line,) = str(Case(f"graph(%x : Tensor):\n{steps}  return (%v0)\n").db).splitlines()
    assert line.endswith("%v18 and 31 more")


def test_text_names_once_what_many_inputs_may_be() -> None:
    inputs = ", ".join(f"%x{i} : Tensor" for i in range(50))
    count = ", ".join(f"%x{i}" for i in range(50))
    first, *others, written = str(
        Case(f"graph({inputs}):\n  %w : Tensor = aten::relu_(%x1)\n  return (%w, {count})\n").db
    ).splitlines()
    assert first.startswith("%x0 : Tensor  ->  borrowed input %x0 : Tensor, borrowed input %x1 : Tensor")
    assert first.endswith("unknown : Tensor and 31 more  (written)"), "inputs may be one another, and unknown memory"
    assert others[:2] == [f"%x{i} : Tensor  ->  all that %x0 may be  (written)" for i in (1, 2)]
    assert len(others) == 50
    assert written.endswith(" and 31 more")


def test_text_of_tensors_asks_no_location_what_it_holds(spy: Spy) -> None:
    """Each of many Ifs gives what the last gave, or a new tensor: values may be any of ever more locations."""
    steps = "".join(
        f"  %b{i} : Tensor = aten::relu(%x)\n  %v{i + 1} : Tensor = prim::If(%c)\n    block0():\n      -> (%b{i})\n"
        f"    block1():\n      -> (%v{i})\n"
        for i in range(300)
    )
    text = f"graph(%x : Tensor, %v0 : Tensor, %c : bool):\n{steps}  %w : Tensor = aten::relu_(%v300)\n  return (%w)\n"
    db = Case(text).db
    held_by = spy(type(db), "held_by")
    assert str(db).count("%v") >= 300
    assert not held_by.called, "tensors hold nothing"


def test_networkx() -> None:
    graph = Case(TEXT).db.to_networkx()
    labels = {data["label"]: key for key, data in graph.nodes(data=True)}
    assert "%lonely : Tensor" not in labels
    edges = {(a, b, data["kind"]) for a, b, data in graph.edges(data=True)}
    memory, held = labels["temporary %l : Tensor[]"], labels["temporary %a : Tensor"]
    assert (labels["%e : Tensor"], held, "denotes") in edges
    assert (memory, held, "holds") in edges
    assert (labels["%w = aten::relu_(%e)"], held, "writes") in edges


def test_dot_quotes_any_name() -> None:
    c = Case("""
graph(%"a\\"b" : Tensor):
  %v : Tensor = aten::t(%"a\\"b")
  return (%v)
""")
    dot = c.db.to_dot()
    assert dot.startswith("digraph alias {")
    assert dot.endswith("}")
    assert '[label="%a\\"b : Tensor", shape=ellipse]' in dot
    assert dot.count("->") == 2
