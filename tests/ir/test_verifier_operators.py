"""The verifier on operators: numbers of inputs, outputs and blocks, types, attributes."""

from __future__ import annotations

import pytest

from irc.errors import Error
from irc.ir import parse_graph, parse_module
from irc.ir.kinds import DOMAINS, SUBGRAPHS
from irc.ir.verify.verifier import verify
from tests.counting import calls
from tests.ir.helpers import body, marked, refused


@pytest.mark.parametrize(
    ("text", "code", "message", "caret"),
    [
        # forms
        (
            body("%y : int = prim::Constant[value=1](%x)", "%x : int"),
            "IRC213",
            "0 inputs here, not 1",
            "prim::Constant",
        ),
        (body("prim::Constant[value=1]()"), "IRC213", "must have 1 output here, not 0", "prim::Constant"),
        (body("prim::If(%c)\n    block0():\n      -> ()", "%c : bool"), "IRC213", "2 blocks here, not 1", "prim::If"),
        (body("prim::If(%c)", "%c : bool"), "IRC213", "2 blocks here, not 0", "prim::If"),
        (body("prim::If()\n  block0():\n -> ()\n block1():\n -> ()"), "IRC213", "1 input here, not 0", "prim::If"),
        (body("%r, %s = prim::Constant[value=1]()"), "IRC213", "1 output here, not 2", "prim::Constant"),
        (body("prim::Loop()\n block0():\n -> ()"), "IRC213", "takes the trip count", "prim::Loop"),
        (body("%r : Tensor = prim::TupleUnpack()"), "IRC213", "1 input here, not 0", "prim::TupleUnpack"),
        (body("%l : Tensor = prim::ListConstruct(%x)", "%x : Tensor"), "IRC214", "makes a list, not Tensor", "%l"),
        (body("%r : Tensor = prim::CallFunction()"), "IRC213", "takes a function", "prim::CallFunction"),
        (body('prim::SetAttr[name="w"](%x)', "%x : __torch__.M"), "IRC213", "2 inputs here, not 1", "prim::SetAttr"),
        (
            body("%r : Tensor = prim::GetAttr(%x)", "%x : __torch__.M"),
            "IRC215",
            "needs an attribute name",
            "prim::GetAttr",
        ),
        (
            body("%r : Dict(str, int) = prim::DictConstruct(%x)", "%x : str"),
            "IRC213",
            "by turns",
            "prim::DictConstruct",
        ),
        (
            body("%r : int = prim::If(%c)\n  block0():\n -> (%c)\n block1():\n -> ()", "%c : bool"),
            "IRC214",
            "%c : bool cannot become output %r : int",
            "prim::If",
        ),
        (
            body("prim::If(%c)\n  block0(%p : int):\n -> ()\n block1():\n -> ()", "%c : bool"),
            "IRC213",
            "block0 must have 0 parameters here, not 1",
            "prim::If",
        ),
        (
            body("prim::If(%c)\n  block0():\n -> ()\n block1():\n -> ()", "%c : Float()"),
            "IRC214",
            "the condition %c must be bool or a Bool tensor",
            "prim::If",
        ),
        (
            body("prim::If(%c)\n  block0():\n -> ()\n block1():\n -> ()", "%c : Bool(2)"),
            "IRC214",
            "with one element, not Bool(2)",
            "prim::If",
        ),
        (body("prim::Loop(%n)\n block0():\n -> ()", "%n : int"), "IRC213", "takes the trip count", "prim::Loop"),
        (
            body("prim::Loop(%n, %c, %n)\n block0(%i : int):\n -> (%c)", "%n : int, %c : bool"),
            "IRC213",
            "must have 1 output here, not 0",
            "prim::Loop",
        ),
        (
            body("%y : int = prim::Loop(%n, %c, %n)\n block0(%i : int):\n -> (%c, %n)", "%n : int, %c : bool"),
            "IRC213",
            "block0 must have 2 parameters here, not 1",
            "prim::Loop",
        ),
        (
            body("prim::Loop(%n, %c)\n block0(%i : int):\n -> (%i)", "%n : int, %c : bool"),
            "IRC214",
            "the condition %i must be bool",
            "prim::Loop",
        ),
        (
            body(
                "%y : int = prim::Loop(%n, %c, %n)\n block0(%i : int, %s : str):\n -> (%c, %s)",
                "%n : int, %c : bool",
            ),
            "IRC214",
            "%n : int cannot become parameter %s : str",
            "prim::Loop",
        ),
        (
            body(
                "onnx::Loop(%n, %c, %n)\n block0(%i : Long(), %d : Bool(), %s : Long()):\n -> (%d)",
                "%n : Long(), %c : Bool()",
            ),
            "IRC213",
            "must return the condition and 1 carried value",
            "onnx::Loop",
        ),
        (
            body(
                "%a : Tensor, %b : Tensor = onnx::Loop(%n, %c)\n block0(%i : Long(), %d : Bool()):\n -> (%d, %i)",
                "%n : Long(), %c : Bool()",
            ),
            "IRC213",
            "there are only 1 result",
            "onnx::Loop",
        ),
        *(
            (
                body(f"%y : Tensor = onnx::Loop[declared_rows={rows}]()\n block0(%i : int, %c : bool):\n -> (%c, %i)"),
                "IRC215",
                words,
                "onnx::Loop",
            )
            for rows, words in (
                ("[]", "a list of 1 type"),
                ("1", "a list of 1 type"),
                ('["Float("]', "is not a type"),
                ("[1]", "is not a type"),
            )
        ),
        (body("onnx::Scan(%x)\n block0(%i : int):\n -> ()", "%x : Tensor"), "IRC215", "num_scan_inputs", "onnx::Scan"),
        (
            body("onnx::Scan[num_scan_inputs=1](%x, %x)\n block0(%i : Tensor, %j : Tensor):\n -> ()", "%x : Tensor"),
            "IRC213",
            "must return 1 state",
            "onnx::Scan",
        ),
        *(
            (
                body(
                    f"%y, %z = onnx::Scan[num_scan_inputs=1, {attribute}](%x, %x)\n"
                    " block0(%i : Tensor, %j : Tensor):\n -> (%i, %j, %j)",
                    "%x : Tensor",
                ),
                "IRC215",
                words,
                "onnx::Scan",
            )
            for attribute, words in (
                ("scan_input_axes=1", "scan_input_axes must be a list of 1 integer"),
                ("scan_input_axes=[0, 1]", "scan_input_axes has 2 elements; it needs 1"),
                ("scan_input_directions=1", "scan_input_directions must be a list of 1 integer"),
                ("scan_output_axes=[0.5, 1.]", "scan_output_axes must be a list of 2 integers"),
                ("scan_output_directions=1", "scan_output_directions must be a list of 2 integers"),
                ("scan_output_directions=[1]", "scan_output_directions has 1 element; it needs 2"),
                ("directions=1", "directions must be a list of 1 integer"),
                ("directions=[1]", "onnx::Scan has no attribute directions"),
                ("declared_inputs=1", "declared_inputs must be a list of 2 types"),
                ('declared_rows=["Tensor"]', "declared_rows must be a list of 2 types"),
                ("body=1", "onnx::Scan has no attribute body"),
            )
        ),
        (
            body("onnx::Scan[num_scan_inputs=True](%x)\n block0(%i : Tensor):\n -> ()", "%x : Tensor"),
            "IRC215",
            "num_scan_inputs must be a positive number",
            "onnx::Scan",
        ),
        (
            body("onnx::Loop[iterations=1]()\n block0(%i : int, %c : bool):\n -> (%c)"),
            "IRC215",
            "onnx::Loop has no attribute iterations",
            "onnx::Loop",
        ),
        (
            body("onnx::Loop[since_version=12]()\n block0(%i : int, %c : bool):\n -> (%c)"),
            "IRC217",
            "onnx::Loop has no version 12; the one before it is 11",
            "onnx::Loop",
        ),
        (body("prim::FusionGroup()"), "IRC215", "needs an attribute Subgraph", "prim::FusionGroup"),
        (
            body("prim::FusionGroup_0()") + "with prim::FusionGroup_0 = graph(%x : int):\n  return ()\n",
            "IRC213",
            "must have 1 input here, not 0",
            "prim::FusionGroup_0",
        ),
        (
            body("%y : str = prim::FusionGroup_0(%x)", "%x : int")
            + "with prim::FusionGroup_0 = graph(%x : int):\n  return (%x)\n",
            "IRC214",
            "%x : int cannot become output %y : str",
            "prim::FusionGroup_0",
        ),
        (body("prim::CallFunction(%f)", "%f : int"), "IRC214", "%f must be a Function", "%f"),
        (body("%l : int = prim::ListConstruct()"), "IRC214", "makes a list, not int", "%l"),
        (body("%l : int[] = prim::ListConstruct(%x)", "%x : str"), "IRC214", "cannot be an element of int[]", "%x"),
        (
            body("%l : (int, str) = prim::TupleConstruct(%x)", "%x : int"),
            "IRC213",
            "2 inputs here, not 1",
            "prim::TupleConstruct",
        ),
        (body("%l : (str) = prim::TupleConstruct(%x)", "%x : int"), "IRC214", "%x : int cannot be a str", "%x"),
        (
            body("%a : int = prim::TupleUnpack(%x)", "%x : (int, int)"),
            "IRC213",
            "2 outputs here, not 1",
            "prim::TupleUnpack",
        ),
        *(
            (
                body(f"%y : Tensor = {kind}_0(%x)", "%x : Tensor")
                + f"with {kind}_0 = graph(%x : Tensor, %z : Tensor):\n  return (%x)\n",
                "IRC213",
                "2 inputs here, not 1",
                f"{kind}_0",
            )
            for kind in sorted(SUBGRAPHS)
        ),
        (body("prim::Exit(%x, %x)", "%x : __torch__.A"), "IRC213", "must have 1 input here, not 2", "prim::Exit"),
        (body("%y : int = prim::Enter()"), "IRC213", "must have 1 input here, not 0", "prim::Enter"),
        (body('%y : int = prim::GetAttr[name="a"](%x)', "%x : Tensor"), "IRC214", "%x must be an object", "%x"),
        (body('prim::SetAttr[name="a"](%x, %x)', "%x : Tensor"), "IRC214", "%x must be an object", "%x"),
        (body('"nothing"()'), "IRC217", "namespace::name", '"nothing"'),
        # constants
        (body("%y : Tensor = prim::Constant[value=1]()"), "IRC214", "value 1 cannot have type Tensor", "%y"),
        (body("%y : int = prim::Constant[value=1.5]()"), "IRC214", "value 1.5 cannot have type int", "%y"),
        (body("%y : int = prim::Constant[value=True]()"), "IRC214", "value True cannot have type int", "%y"),
        (body("%y : int = prim::Constant()"), "IRC214", "value None cannot have type int", "%y"),
        (body("%y : int[] = prim::Constant[value=[1.]]()"), "IRC214", "value [1.] cannot have type int[]", "%y"),
        (body("%y : (int) = prim::Constant[value=(1, 2)]()"), "IRC214", "cannot have type (int)", "%y"),
        (body("%y : Dict(str, int) = prim::Constant[value={1: 1}]()"), "IRC214", "cannot have type Dict", "%y"),
        (
            body("%y : Float(3) = prim::Constant[value=splat<Float(2)>(1.)]()"),
            "IRC214",
            "tensor Float(2) cannot have type Float(3)",
            "%y",
        ),
        *(
            (
                body(f"%f : Function = prim::Constant{name}()\n  prim::CallFunction(%f)"),
                "IRC215",
                "a constant Function needs an attribute name",
                "prim::Constant",
            )
            for name in ("", "[name=1]", "[name=[1]]")
        ),
        # blocks
        *(
            (
                body(f"%y : Tensor = {kind}(%x)\n    block0():\n      -> (%x)", "%x : Tensor"),
                "IRC213",
                words,
                kind,
            )
            for kind, words in (
                ("aten::relu", "aten::relu has no blocks; here it has 1"),
                ("aten::clamp_", "aten::clamp_ has no blocks"),
                ("aten::no_such", "aten::no_such has no blocks"),
                ("prim::NumToTensor", "prim::NumToTensor has no blocks"),
                ("irc::overwrite", "irc::overwrite has no blocks"),
                ("onnx::Relu", "onnx::Relu must have 0 blocks, not 1"),
                ("onnx::Relu_", "onnx::Relu_ must have 0 blocks, not 1"),
                ("ai.onnx.ml::Binarizer", "must have 0 blocks, not 1"),
                ("prim::Uninitialized", "must have 0 inputs here, not 1"),
            )
        ),
        (
            body("%y = prim::CallFunction(%f)\n    block0():\n      -> ()", "%f : Function"),
            "IRC213",
            "prim::CallFunction must have 0 blocks here, not 1",
            "prim::CallFunction",
        ),
        # schemas
        (body("%y : int = aten::relu(%x)", "%x : Tensor"), "IRC214", "cannot be int", "%y"),
        (body("aten::relu(%x)", "%x : Tensor"), "IRC213", "has 1 output, not 0", "aten::relu"),
        # ONNX
        *(
            (body(f"%y : Tensor = {kind}(%x)", "%x : Tensor"), "IRC217", f"knows no operator {kind}", kind)
            for kind in (f"{domain}::Ad" for domain in DOMAINS)
        ),
        (
            body("%y : Tensor = onnx::Relu[since_version=99999](%x)", "%x : Tensor"),
            "IRC217",
            "no version 99999; the one before it is 14",
            "onnx::Relu",
        ),
        (body("%y : Tensor = onnx::Add(%x)", "%x : Tensor"), "IRC213", "must have 2 inputs, not 1", "onnx::Add"),
        (body("%y : Tensor = onnx::Concat[axis=0]()"), "IRC213", "must have 1 or more inputs, not 0", "onnx::Concat"),
        (
            body("%y : Tensor = onnx::Clip(%x, %x, %x, %x)", "%x : Tensor"),
            "IRC213",
            "must have 1 to 3 inputs, not 4",
            "onnx::Clip",
        ),
        (body("onnx::Relu(%x)", "%x : Tensor"), "IRC213", "must have 1 output, not 0", "onnx::Relu"),
        (
            body("%y : Tensor = onnx::Relu[alpha=1.](%x)", "%x : Tensor"),
            "IRC215",
            "has no attribute alpha",
            "onnx::Relu",
        ),
        (
            body("%y : Tensor = onnx::Elu[alhpa=1.](%x)", "%x : Tensor"),
            "IRC215",
            "no attribute alhpa; did you mean alpha?",
            "onnx::Elu",
        ),
        (body('%y : Tensor = onnx::Elu[alpha="1"](%x)', "%x : Tensor"), "IRC215", "must be FLOAT", "onnx::Elu"),
        (
            body("%y : Tensor = onnx::Transpose[perm=[1.]](%x)", "%x : Tensor"),
            "IRC215",
            "attribute perm of onnx::Transpose must be INTS",
            "onnx::Transpose",
        ),
        (body("%y : Tensor = onnx::Cast(%x)", "%x : Tensor"), "IRC215", "needs an attribute to", "onnx::Cast"),
        (
            body("%y : Tensor = onnx::Sqrt(%x)", "%x : Long()"),
            "IRC214",
            "input X of onnx::Sqrt cannot be Long(); it can be tensor(bfloat16)",
            "%x",
        ),
        (body("%y : Tensor = onnx::Sqrt(%x)", "%x : int"), "IRC214", "input X of onnx::Sqrt cannot be int", "%x"),
        (
            body("%y : Tensor = onnx::Add(%x, %z)", "%x : Float(), %z : Double()"),
            "IRC214",
            "input B of onnx::Add must be of the same type as those before it: Float and Double",
            "%z",
        ),
        (
            body("%y : Double() = onnx::Add(%x, %x)", "%x : Float()"),
            "IRC214",
            "output C of onnx::Add must be of the same type",
            "%y",
        ),
        (
            body("%y : Tensor = onnx::SequenceAt(%x, %i)", "%x : Tensor, %i : Long()"),
            "IRC214",
            "input input_sequence of onnx::SequenceAt cannot be Tensor; it can be seq(",
            "%x",
        ),
        (
            body("%y : Tensor = onnx::Relu(%n)", "%n : NoneType"),
            "IRC214",
            "cannot be NoneType",
            "%n",
        ),
        *(
            (
                body("%y : Tensor = onnx::Relu(%x)", f"%x : {type}"),
                "IRC214",
                f"input X of onnx::Relu cannot be {type}; it can be tensor(",
                "%x",
            )
            for type in (
                "(Tensor, int)",
                "(Any)",
                "Future(Tensor)",
                "__torch__.A",
                "Enum<__torch__.Color>",
                "Union(int, Tensor)",
                "Union(Tensor, NoneType)",
                "Tensor?",
            )
        ),
        (
            body("%y : int = onnx::SequenceLength(%x)", "%x : (Tensor, int)[]"),
            "IRC214",
            "input input_sequence of onnx::SequenceLength cannot be (Tensor, int)[]",
            "%x",
        ),
        (
            body("%y : (Tensor) = onnx::Relu(%x)", "%x : Tensor"),
            "IRC214",
            "output Y of onnx::Relu cannot be (Tensor)",
            "%y",
        ),
        (
            body("%y : __torch__.A[] = prim::ListConstruct(%a, %b)", "%a : __torch__.A, %b : __torch__.B"),
            "IRC214",
            "%b : __torch__.B cannot be an element of __torch__.A[]",
            "%b",
        ),
        (body("%y : Tensor = irc::slice_scatter(%x)", "%x : Tensor"), "IRC213", "do not fit", "irc::slice_scatter"),
        (body("%y : Tensor = irc::append_(%x, %n)", "%x : Tensor, %n : int"), "IRC213", "do not fit", "irc::append_"),
        (
            body("%y : Tensor = irc::append_(%x, %x)", "%x : Tensor"),
            "IRC215",
            "irc::append_ needs an attribute axis, an integer",
            "irc::append_",
        ),
        (
            body("%y : Tensor = irc::slice_scatter_[starts=[0], steps=1](%x, %x)", "%x : Tensor"),
            "IRC215",
            "needs an attribute steps, a list of integers",
            "irc::slice_scatter_",
        ),
        (
            body("%y : Tensor, %z : Tensor = irc::overwrite(%x, %x)", "%x : Tensor"),
            "IRC213",
            "has 1 output, not 2",
            "irc::overwrite",
        ),
    ],
)
def test_operators_must_be_right(text: str, code: str, message: str, caret: str) -> None:
    error = refused(parse_graph(text))
    assert error.code == code
    assert message in error.message
    assert marked(error) == caret


@pytest.mark.parametrize(
    "text",
    [
        body("%y : bool = aten::eq(%x, %x)", "%x : Enum<__torch__.Color>"),
        body("%y : InterfaceType<I>[] = prim::ListConstruct(%a, %b)", "%a : __torch__.A, %b : __torch__.B"),
        body("%y : int = prim::DifferentiableGraph_0(%x)", "%x : int")
        + "with prim::DifferentiableGraph_0 = graph(%x : int):\n  return (%x, %x)\n",
        body("%y : Tensor = onnx::Clip(%x, %n, %x)", "%x : Tensor, %n : NoneType"),
        body("%y : Tensor = onnx::Relu(%x)", "%x : Any"),
        body("%y : Tensor = onnx::Relu(%x)", "%x : Union(Float(2), Double(3))"),
        body("%y : Tensor = onnx::Identity(%x)", "%x : Union(Tensor, Tensor[])"),
        body("%y : int = onnx::Identity(%x)", "%x : int"),
        body("%y : (int, Tensor)? = onnx::Identity(%x)", "%x : (int, Tensor)"),
        body("%y : Long() = onnx::SequenceLength(%x)", "%x : Any[]"),
        body("%y : Float() = onnx::Relu_(%x)", "%x : Float()"),
        body("%y : Tensor = onnx::Elu[alpha=1](%x)", "%x : Tensor"),
        body("%y : Float()[] = onnx::SequenceConstruct(%x, %x)", "%x : Float()"),
        body("%y : Float() = onnx::SequenceAt(%x, %i)", "%x : Float()[], %i : Long()"),
        body("%y : Tensor = ai.onnx.ml::Binarizer(%x)", "%x : Float()"),
        body("%y : Tensor = com.microsoft::Anything[a=1](%x, %x, %x)", "%x : int"),
        body("%y : Tensor = aten::some_new_operator(%x)", "%x : Tensor"),
        body("%y : Tensor = my::operator(%x)\n    block0():\n      -> (%x)", "%x : Tensor"),
        body("%y : Layout = prim::Constant[value=0]()"),
        body("%y : Tensor = prim::Constant()"),
        body('%f : Function = prim::Constant[name="g"]()\n  %y : int = prim::CallFunction(%f)'),
        body("%y : Tensor = irc::append_[axis=0](%x, %x)", "%x : Tensor"),
        body("%y : Tensor = irc::append_[axis=0](%x, %a)", "%x : Tensor, %a : Any"),
        body("%y : Tensor = irc::slice_scatter[starts=[0], steps=[1]](%x, %x)", "%x : Tensor"),
        body("%y : Tensor = irc::overwrite[same_type=1](%x, %x)", "%x : Tensor"),
        body("onnx::Loop(%n, %a)\n block0(%i : Long(), %d : Bool()):\n -> (%d)", "%n : NoneType, %a : NoneType"),
        *(
            body(
                f"%y : Float(4) = onnx::Scan[num_scan_inputs=1{attributes}](%x, %x)\n"
                " block0(%i : Float(4), %j : Float()):\n -> (%i, %j)",
                "%x : Float(4)",
            )
            for attributes in (
                "",
                ", scan_input_axes=[], scan_output_axes=[0], scan_input_directions=[1], scan_output_directions=[0]",
                ', declared_rows=["Float()"], declared_inputs=["Float(*)", "Float()"]',
            )
        ),
        body(
            "%y : Float(2, 4) = onnx::Scan[num_scan_inputs=1, directions=[1], since_version=8](%n, %x, %x)\n"
            " block0(%i : Float(4), %j : Float(4)):\n -> (%i, %j)",
            "%x : Float(2, 4), %n : NoneType",
        ),
    ],
)
def test_operators_that_are_right(text: str) -> None:
    parse_graph(text).verify()


def test_calls_are_checked_against_the_functions_of_the_module() -> None:
    call = body('%f : Function = prim::Constant[name="g"]()\n  %y : int = prim::CallFunction(%f, %x)', "%x : int")
    for function, message in (
        ("graph g():\n  %z : int = prim::Constant[value=1]()\n  return (%z)\n", "must have 1 input here, not 2"),
        ("graph g(%z : int):\n  return ()\n", "must have 0 outputs here, not 1"),
        ("graph g(%z : str):\n  %r : int = prim::Constant[value=1]()\n  return (%r)\n", "cannot become input of g"),
    ):
        with pytest.raises(Error, match=message):
            parse_module(call + function).verify()
    parse_module(call + "graph g(%z : int):\n  return (%z)\n").verify()


def test_operator_checks_can_be_left_out() -> None:
    graph = parse_graph(body("%y : Tensor = onnx::Nothing[since_version=77]()"))
    verify(graph, operators=False)
    assert refused(graph).code == "IRC217"


def test_types_of_very_many_parts_are_looked_into_once() -> None:
    def work(n: int) -> int:
        parts = f"  %t : ({', '.join(['Tensor'] * n)}) = prim::TupleConstruct({', '.join(['%x'] * n)})\n"
        uses = "".join(f"  %y{i} : Tensor = prim::TupleIndex(%t, %i)\n" for i in range(n))
        graph = parse_graph(f"graph(%x : Tensor, %i : int):\n{parts}{uses}  return (%y0)")
        return calls(graph.verify)

    assert work(800) < 5 * work(200)
