"""What `irc operators` says is what the tables say, and what it says of memory is what the analysis answers."""

import json
import re
from pathlib import Path

import pytest

from irc import ops
from irc.alias import analyze, rules
from irc.errors import Error
from irc.ir import Builder, Graph, OptionalType, Schema, TensorType, types
from irc.ops.signatures import kinds as kinds_with_rows
from irc.runtime.kernels.registry import registered
from irc.tools import catalog
from irc.tools.catalog import Operator, on_memory

ROOT = Path(__file__).parent.parent
OWN = ("ai.onnx", "aten::", "com.microsoft::", "irc::", "onnx::", "prim::")
KINDS = [kind for kind in catalog.kinds() if kind.startswith(OWN)]
"""Irc's own: other tests register some, too."""


def the(name: str) -> Operator:
    (found,) = catalog.find([name])
    return found


# -- memory ----------------------------------------------------------------------


def is_plain(row: Schema) -> bool:
    """Whether arguments and results are tensors, or have no memory."""
    formals = [f.type.elem if isinstance(f.type, OptionalType) else f.type for f in (*row.arguments, *row.returns)]
    return all(isinstance(t, TensorType) or t in (types.INT, types.FLOAT, types.BOOL, types.STR) for t in formals)


def said_of(row: Schema) -> tuple[set[str], set[str]]:
    """The arguments that it is said to write, and those that a result is said to share with."""
    (said,) = (s for s in on_memory(row.name).said if not s.overloads or str(row).partition("(")[0] in s.overloads)
    statement = re.compile(r"(?!draws|acts)(writes|.*? (?:is(?! fresh)|may share with|shares .* of)) (.*)")
    found = [statement.fullmatch(text) for text in said.statements]
    named: tuple[set[str], set[str]] = set(), set()
    for match in found:
        if match is not None:
            named[match[1] != "writes"].update(re.split(r", | and ", match[2]))
    return named[0] - {"nothing"}, named[1] - {"unknown memory"}


def answers_about(row: Schema) -> tuple[set[str], set[str]]:
    """The same, of a node whose inputs share with nothing else."""
    graph = Graph()
    inputs = [graph.add_input(a.type, f"v{i}") for i, a in enumerate(row.arguments)]
    node = Builder(graph).node(row.name, inputs, [r.type for r in row.returns])
    db = analyze(graph, noalias=inputs)
    arguments = {a.name or f"argument {i}": value for i, (a, value) in enumerate(zip(row.arguments, inputs))}
    written = {name for name, value in arguments.items() if db.writes_to_alias(node, value)}
    return written, {name for name, value in arguments.items() if any(db.may_alias(value, o) for o in node.outputs)}


def test_what_is_said_of_memory_is_what_the_analysis_answers() -> None:
    rows = [row for kind in KINDS if not rules.has_rule(kind) for row in ops.schemas(kind) if is_plain(row)]
    assert len(rows) > 700
    assert [str(row) for row in rows if said_of(row) != answers_about(row)] == []


def test_rules_say_what_they_do() -> None:
    own = {kind: rules.own_rule(kind) for kind in rules.kinds() if kind.startswith(OWN)}
    assert [kind for kind, entry in own.items() if entry and entry.rule and not entry.rule.__doc__] == []


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        ("onnx::Conv", "results are fresh memory"),
        ("onnx::Relu_", "the result is self"),
        ("onnx::Split", "output may share with input"),
        ("aten::select", "the result shares a part of self"),
        ("aten::t", "the result shares all of self"),
        ("aten::append", "stores el in self"),
        ("aten::split", "the result is fresh memory, and may hold self"),
        ("aten::get", "the result may share with what self holds and default_value"),
        ("aten::dropout", "draws random numbers, unless train is false"),
        ("prim::Print", "acts on the world: it is never removed, and nothing is moved past it"),
        ("prim::grad", "the result may share with unknown memory"),
        ("com.example::Nowhere", "Code that irc cannot see"),
    ],
)
def test_statements(kind: str, statement: str) -> None:
    assert statement in {text for said in on_memory(kind).said for text in said.statements}


# -- all of them -----------------------------------------------------------------


@pytest.fixture(scope="module")
def everything() -> list[dict[str, object]]:
    return json.loads(json.dumps([Operator(kind).to_dict() for kind in KINDS]))


def test_all_operators_with_kernels_rows_or_rules_are_there() -> None:
    known = catalog.kinds()
    assert {*registered(), *kinds_with_rows(), *rules.kinds()} <= set(known)
    assert {"com.microsoft::Attention", "onnx::Conv", "onnx::Relu_", "prim::If", "ai.onnx.ml::Scaler"} <= set(known)
    assert len(set(known)) == len(known)


def test_places_are_there(everything: list[dict[str, object]]) -> None:
    places = set(re.findall(r'"(irc/[\w/]+\.py):(\d+)"', json.dumps(everything)))
    assert len(places) > 500
    lines = {path: (ROOT / path).read_text("utf-8").splitlines() for path, _ in places}
    assert [(path, line) for path, line in places if not lines[path][int(line) - 1].strip()] == []
    assert json.dumps(everything).count(".py:") == json.dumps(everything).count('"irc/')


def test_places_lead_to_what_they_name() -> None:
    def line(place: str | None) -> str:
        path, _, number = (place or "").partition(":")
        return (ROOT / path).read_text("utf-8").splitlines()[int(number) - 1]

    assert line(the("onnx::Conv").kernels[1]) == '@computes("onnx::Conv", resolve=resolver)'
    assert line(the("onnx::Clip").kernels[6]).startswith('FAMILY.unary("Clip", ')
    assert line(the("onnx::Swish").kernels[1]).startswith('@FAMILY.semantics("onnx::Swish", ')
    assert 'register("ceil"' in line(the("aten::ceil").kernels[1])
    assert '"Softmax"' in line(the("onnx::Softmax").shape_rule)
    assert (the("aten::roll").shape_rule or "").startswith("irc/ops/aten/")
    assert line(the("prim::If").alias_rule) == "def _if(rec: Recorder, node: Node) -> Steps:"
    assert [line(place) for place in the("prim::If").verified] == ["def _if(node: Node) -> None:"]
    assert [line(place) for place in the("aten::relu").verified] == ["def check_schema(node: Node) -> None:"]
    assert "gelu" in line(the("com.microsoft::FastGelu").expanded_by).lower()


def test_forms_belong_together(everything: list[dict[str, object]]) -> None:
    by_kind = {operator["kind"]: operator for operator in everything}
    for kind, operator in by_kind.items():
        inplace_variant = operator["in_place"]
        assert inplace_variant is None or by_kind[inplace_variant]["functional"] == kind
    assert the("aten::add_").functional == "aten::add" and the("irc::append_").functional == "onnx::Concat"
    assert the("onnx::Relu").is_put_in_place and not the("aten::eq").is_put_in_place
    assert the("onnx::Greater").in_place is None


def test_what_runs(everything: list[dict[str, object]]) -> None:
    standard = [o for o in everything if str(o["kind"]).startswith(("onnx::", "ai.onnx", "com.microsoft::"))]
    assert [o["kind"] for o in standard if not o["runs"]] == ["ai.onnx.preview.training::Gradient"]
    contrib = {o["kind"]: o["runs"] for o in standard if str(o["kind"]).startswith("com.microsoft::")}
    assert contrib.pop("com.microsoft::DynamicQuantizeLSTM") != "expanded"  # it is an operator of its own
    assert set(contrib.values()) == {"expanded"}
    assert (the("prim::Loop").runs, the("onnx::SequenceMap").runs) == ("kernel", "expanded")
    assert the("onnx::Attention").runs == "expanded"


# -- one of them -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("Conv", ["onnx::Conv"]),
        ("ai.onnx::Conv", ["onnx::Conv"]),
        ("Gelu", ["com.microsoft::Gelu", "onnx::Gelu"]),
        ("add", ["aten::add"]),
        ("aten::add.Tensor", ["aten::add"]),
        ("aten::clip_", ["aten::clamp_"]),
        ("clip", ["aten::clamp"]),
        ("LabelEncoder", ["ai.onnx.ml::LabelEncoder"]),
    ],
)
def test_names(name: str, kinds: list[str]) -> None:
    assert [operator.kind for operator in catalog.find([name])] == kinds


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("aten::relux", "; did you mean 'aten::relu'?"),
        ("Cnov", "; did you mean 'onnx::Conv'?"),
        ("com.example::zzzzzzzzz", ""),
        ("com.example::x", ""),
        ("com.nowhere::GroupQueryAttentions", "; did you mean 'com.microsoft::GroupQueryAttention'?"),
        ("prim::ListConstruc", "; did you mean 'prim::ListConstruct'?"),
        ("", ""),
        ("::", ""),
    ],
)
def test_names_of_nothing(name: str, hint: str) -> None:
    with pytest.raises(Error, match="IRC217") as caught:
        catalog.find(["Relu", name])
    assert caught.value.message == f"irc knows no operator {name!r}{hint}"


def test_other_names() -> None:
    assert the("aten::clamp").other_names == ("aten::clip",)
    assert the("aten::clamp").fuses and not the("aten::clamp_").fuses
    assert the("onnx::Add").fuses == "pointwise, from version 7 on"


def test_the_record_is_shown() -> None:
    conv = the("onnx::Conv").record
    assert conv.keys() == {"attributes", "epilogues", "macs", "value_operands", "widened"}
    assert conv["macs"][0].startswith("irc/ops/onnx/convolution.py:")
    assert (conv["epilogues"], conv["widened"], conv["value_operands"]) == (["yes"], ["1", "2"], [])
    assert conv["attributes"] == ["auto_pad: NOTSET SAME_UPPER SAME_LOWER VALID"]
    assert the("onnx::Reshape").record["movement"] == ["in-order"]
    assert the("aten::view").record["layout"] == ["in-order", "seen"]
