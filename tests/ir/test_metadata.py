"""Metadata of nodes, values and blocks: text, copies, moves; merging them, within bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.errors import Error
from irc.ir import Graph, parse_graph, parse_module, structurally_equal
from irc.passes import PassManager
from tests.effort import examples

TEXT = """graph(%x : Float(2),
      %"odd name" : bool):
  %y : Float(2) = onnx::Relu(%x) # relu
  prim::Print(%y)
  %z : Float(2), %w : Float(2) = prim::If(%"odd name")
    block0():
      %n : Float(2) = onnx::Neg(%y)
      -> (%n, %y)
    block1():
      -> (%x, %x)
  %s : Float(2) = prim::FusionGroup_0(%z, %w)
  return (%s)
# metadata {"author": "somebody"}
# metadata %x {"unit": "px\\n\\ud800\\u00e9"}
# metadata %"odd name" {"a": ""}
# metadata node %y {"irc.source": "a, b", "odd \\"key\\"": "{}"}
# metadata node 2 {"n": "1"}
# metadata %w {"w": "w"}
# metadata block 1 %z {"irc.graph_name": "else"}
# metadata node %n {"in": "block"}
with prim::FusionGroup_0 = graph(%p : Float(2),
      %q : Float(2)):
  %r : Float(2) = onnx::Add(%p, %q)
  return (%r)
# metadata node %r {"in": "group"}

graph f(%v : Float(2)):
  return (%v)
# metadata {"of": "a function"}
"""
TEXT = TEXT.replace("node 2", "node 1")


texts = st.text(st.characters(exclude_categories=()), max_size=8)
said = st.dictionaries(texts, texts, min_size=1, max_size=3)


@examples(60)
@given(st.lists(said, min_size=8, max_size=8), texts.filter(bool))
def test_whatever_is_said_is_read_back(parts, name):
    graph = parse_graph(TEXT.partition("\ngraph f")[0])
    graph.value("x").name = name
    nodes = list(graph.walk())
    subjects = [graph, graph.value(name), nodes[0].outputs[0], *nodes[:3], nodes[2].blocks[0], nodes[2].blocks[1]]
    for subject, metadata in zip(subjects, parts, strict=True):
        subject.metadata = metadata
    again = parse_graph(str(graph))
    assert structurally_equal(graph, again, metadata=True) is None
    assert str(again) == str(graph)


def test_text_without_the_notes_differs_in_nothing_else():
    plain = parse_module("\n".join(line for line in TEXT.splitlines() if not line.startswith("# metadata")))
    module = parse_module(TEXT)
    assert structurally_equal(module, plain) is None
    assert "metadata" in structurally_equal(module, plain, metadata=True)
    assert not plain.main.has_metadata


def test_copies_have_it():
    module = parse_module(TEXT)
    assert str(module.copy()) == TEXT
    assert str(module.main.copy()) == str(module.main)


def test_comments_that_only_look_alike_are_comments():
    graph = parse_graph("graph(%x : Tensor):\n  return (%x)\n# metadata of this are not known\n# metadata: {}\n")
    assert not graph.metadata


@pytest.mark.parametrize(
    ("note", "code"),
    [
        ("{", "IRC110"),
        ('{"a": 1}', "IRC110"),
        ('{"a": "b"', "IRC110"),
        ('{"a": "b"} more', "IRC110"),
        ('{"a": {"b": "c"}}', "IRC110"),
        ("{" + '"a": {' * 100_000, "IRC110"),
        ('{"a": "b", "a": "c"}', "IRC112"),
        ('%x {"a": "b"}', ""),
        ('%nowhere {"a": "b"}', "IRC111"),
        ('node {"a": "b"}', "IRC110"),
        ('node %x {"a": "b"}', "IRC111"),
        ('node 1 {"a": "b"}', "IRC111"),
        ('0 {"a": "b"}', "IRC110"),
        ('block 0 %y {"a": "b"}', "IRC111"),
        ('block 1 0 {"a": "b"}', "IRC111"),
    ],
)
def test_notes_that_are_wrong(note, code):
    text = f"graph(%x : Tensor):\n  %y : Tensor = onnx::Relu(%x)\n  return (%y)\n# metadata {note}\n"
    if not code:
        assert parse_graph(text).value("x").metadata == {"a": "b"}
        return
    with pytest.raises(Error) as error:
        parse_graph(text)
    assert (error.value.code, error.value.where.split(":")[1]) == (code, "4")


def test_one_thing_has_one_note():
    with pytest.raises(Error, match="IRC112"):
        parse_graph('graph(%x : Tensor):\n  return (%x)\n# metadata {"a": "b"}\n# metadata {"c": "d"}\n')


def test_it_is_read_only_and_of_strings():
    graph = Graph()
    value = graph.add_input(parse_graph("graph(%x : Tensor):\n  return (%x)\n").value("x").type, "x")
    with pytest.raises(TypeError):
        value.metadata["a"] = "b"
    value.metadata = {"a": "b"}
    with pytest.raises(TypeError):
        value.metadata["a"] = "c"
    with pytest.raises(TypeError, match="strings"):
        value.metadata = {"a": 1}
    assert value.metadata == {"a": "b"}


def test_groups_and_their_dissolution_keep_it():
    graph = parse_graph("""graph(%x : Float(2)):
  %a : Float(2) = onnx::Exp(%x) # exp
  %b : Float(2) = onnx::Neg(%a) # neg
  return (%b)
# metadata node %a {"k": "exp"}
# metadata %b {"doc": "result"}
# metadata node %b {"k": "neg"}
""")
    PassManager("fuse").run(graph)
    (group,) = graph.nodes
    inside = group.attributes["Subgraph"]
    assert [node.metadata.get("k") for node in inside.nodes] == ["exp", "neg"]
    assert graph.value("b").metadata == {"doc": "result"}
    assert structurally_equal(parse_graph(str(graph)), graph, metadata=True) is None
