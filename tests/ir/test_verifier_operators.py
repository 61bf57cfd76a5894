"""The verifier on operators: numbers of inputs, outputs and blocks, types, attributes."""

import pytest

from irc.errors import Error
from irc.ir import parse_graph, parse_module
from irc.ir.kinds import DOMAINS, SUBGRAPHS
from tests.counting import calls
from tests.ir.helpers import body, marked, refused
from tests.tables import rows

REFUSED = r"""
IRC213 prim::Constant | 0 inputs here, not 1 | %x : int | %y : int = prim::Constant[value=1](%x)
IRC213 prim::Constant | must have 1 output here, not 0 | - | prim::Constant[value=1]()
IRC213 prim::If | 2 blocks here, not 1 | %c : bool | prim::If(%c) / block0(): / -> ()
IRC213 prim::If | 2 blocks here, not 0 | %c : bool | prim::If(%c)
IRC213 prim::If | 1 input here, not 0 | - | prim::If() / block0(): / -> () / block1(): / -> ()
IRC213 prim::Constant | 1 output here, not 2 | - | %r, %s = prim::Constant[value=1]()
IRC213 prim::Loop | takes the trip count | - | prim::Loop() / block0(): / -> ()
IRC213 prim::TupleUnpack | 1 input here, not 0 | - | %r : Tensor = prim::TupleUnpack()
IRC214 %l | makes a list, not Tensor | %x : Tensor | %l : Tensor = prim::ListConstruct(%x)
IRC213 prim::CallFunction | takes a function | - | %r : Tensor = prim::CallFunction()
IRC213 prim::SetAttr | 2 inputs here, not 1 | %x : __torch__.M | prim::SetAttr[name="w"](%x)
IRC215 prim::GetAttr | needs an attribute name | %x : __torch__.M | %r : Tensor = prim::GetAttr(%x)
IRC213 prim::DictConstruct | by turns | %x : str | %r : Dict(str, int) = prim::DictConstruct(%x)
IRC214 prim::If | %c : bool cannot become output %r : int | %c : bool
    | %r : int = prim::If(%c) / block0(): / -> (%c) / block1(): / -> ()
IRC213 prim::If | block0 must have 0 parameters here, not 1 | %c : bool
    | prim::If(%c) / block0(%p : int): / -> () / block1(): / -> ()
IRC214 prim::If | the condition %c must be bool or a Bool tensor | %c : Float()
    | prim::If(%c) / block0(): / -> () / block1(): / -> ()
IRC214 prim::If | with one element, not Bool(2) | %c : Bool(2) | prim::If(%c) / block0(): / -> () / block1(): / -> ()
IRC213 prim::Loop | takes the trip count | %n : int | prim::Loop(%n) / block0(): / -> ()
IRC213 prim::Loop | must have 1 output here, not 0 | %n : int, %c : bool
    | prim::Loop(%n, %c, %n) / block0(%i : int): / -> (%c)
IRC213 prim::Loop | block0 must have 2 parameters here, not 1 | %n : int, %c : bool
    | %y : int = prim::Loop(%n, %c, %n) / block0(%i : int): / -> (%c, %n)
IRC214 prim::Loop | the condition %i must be bool | %n : int, %c : bool
    | prim::Loop(%n, %c) / block0(%i : int): / -> (%i)
IRC214 prim::Loop | %n : int cannot become parameter %s : str | %n : int, %c : bool
    | %y : int = prim::Loop(%n, %c, %n) / block0(%i : int, %s : str): / -> (%c, %s)
IRC213 onnx::Loop | must return the condition and 1 carried value | %n : Long(), %c : Bool()
    | onnx::Loop(%n, %c, %n) / block0(%i : Long(), %d : Bool(), %s : Long()): / -> (%d)
IRC213 onnx::Loop | there are only 1 result | %n : Long(), %c : Bool()
    | %a : Tensor, %b : Tensor = onnx::Loop(%n, %c) / block0(%i : Long(), %d : Bool()): / -> (%d, %i)
IRC215 onnx::Scan | num_scan_inputs | %x : Tensor | onnx::Scan(%x) / block0(%i : int): / -> ()
IRC213 onnx::Scan | must return 1 state | %x : Tensor
    | onnx::Scan[num_scan_inputs=1](%x, %x) / block0(%i : Tensor, %j : Tensor): / -> ()
IRC215 onnx::Scan | num_scan_inputs must be a positive number | %x : Tensor
    | onnx::Scan[num_scan_inputs=True](%x) / block0(%i : Tensor): / -> ()
IRC215 onnx::Loop | onnx::Loop has no attribute iterations | -
    | onnx::Loop[iterations=1]() / block0(%i : int, %c : bool): / -> (%c)
IRC217 onnx::Loop | onnx::Loop has no version 12; the one before it is 11 | -
    | onnx::Loop[since_version=12]() / block0(%i : int, %c : bool): / -> (%c)
IRC215 prim::FusionGroup | needs an attribute Subgraph | - | prim::FusionGroup()
IRC214 %f | %f must be a Function | %f : int | prim::CallFunction(%f)
IRC214 %l | makes a list, not int | - | %l : int = prim::ListConstruct()
IRC214 %x | cannot be an element of int[] | %x : str | %l : int[] = prim::ListConstruct(%x)
IRC213 prim::TupleConstruct | 2 inputs here, not 1 | %x : int | %l : (int, str) = prim::TupleConstruct(%x)
IRC214 %x | %x : int cannot be a str | %x : int | %l : (str) = prim::TupleConstruct(%x)
IRC213 prim::TupleUnpack | 2 outputs here, not 1 | %x : (int, int) | %a : int = prim::TupleUnpack(%x)
IRC213 prim::Exit | must have 1 input here, not 2 | %x : __torch__.A | prim::Exit(%x, %x)
IRC213 prim::Enter | must have 1 input here, not 0 | - | %y : int = prim::Enter()
IRC214 %x | %x must be an object | %x : Tensor | %y : int = prim::GetAttr[name="a"](%x)
IRC214 %x | %x must be an object | %x : Tensor | prim::SetAttr[name="a"](%x, %x)
IRC217 "nothing" | namespace::name | - | "nothing"()
IRC214 %y | value 1 cannot have type Tensor | - | %y : Tensor = prim::Constant[value=1]()
IRC214 %y | value 1.5 cannot have type int | - | %y : int = prim::Constant[value=1.5]()
IRC214 %y | value True cannot have type int | - | %y : int = prim::Constant[value=True]()
IRC214 %y | value None cannot have type int | - | %y : int = prim::Constant()
IRC214 %y | value [1.] cannot have type int[] | - | %y : int[] = prim::Constant[value=[1.]]()
IRC214 %y | cannot have type (int) | - | %y : (int) = prim::Constant[value=(1, 2)]()
IRC214 %y | cannot have type Dict | - | %y : Dict(str, int) = prim::Constant[value={1: 1}]()
IRC214 %y | tensor Float(2) cannot have type Float(3) | - | %y : Float(3) = prim::Constant[value=splat<Float(2)>(1.)]()
IRC213 prim::CallFunction | prim::CallFunction must have 0 blocks here, not 1 | %f : Function
    | %y = prim::CallFunction(%f) / block0(): / -> ()
IRC214 %y | cannot be int | %x : Tensor | %y : int = aten::relu(%x)
IRC213 aten::relu | has 1 output, not 0 | %x : Tensor | aten::relu(%x)
IRC217 onnx::Relu | no version 99999; the one before it is 14 | %x : Tensor
    | %y : Tensor = onnx::Relu[since_version=99999](%x)
IRC213 onnx::Add | must have 2 inputs, not 1 | %x : Tensor | %y : Tensor = onnx::Add(%x)
IRC213 onnx::Concat | must have 1 or more inputs, not 0 | - | %y : Tensor = onnx::Concat[axis=0]()
IRC213 onnx::Clip | must have 1 to 3 inputs, not 4 | %x : Tensor | %y : Tensor = onnx::Clip(%x, %x, %x, %x)
IRC213 onnx::Relu | must have 1 output, not 0 | %x : Tensor | onnx::Relu(%x)
IRC215 onnx::Relu | has no attribute alpha | %x : Tensor | %y : Tensor = onnx::Relu[alpha=1.](%x)
IRC215 onnx::Elu | no attribute alhpa; did you mean alpha? | %x : Tensor | %y : Tensor = onnx::Elu[alhpa=1.](%x)
IRC215 onnx::Elu | must be FLOAT | %x : Tensor | %y : Tensor = onnx::Elu[alpha="1"](%x)
IRC215 onnx::Transpose | attribute perm of onnx::Transpose must be INTS | %x : Tensor
    | %y : Tensor = onnx::Transpose[perm=[1.]](%x)
IRC215 onnx::Cast | needs an attribute to | %x : Tensor | %y : Tensor = onnx::Cast(%x)
IRC214 %x | input X of onnx::Sqrt cannot be Long(); it can be tensor(bfloat16) | %x : Long()
    | %y : Tensor = onnx::Sqrt(%x)
IRC214 %x | input X of onnx::Sqrt cannot be int | %x : int | %y : Tensor = onnx::Sqrt(%x)
IRC214 %z | input B of onnx::Add must be of the same type as those before it: Float and Double
    | %x : Float(), %z : Double() | %y : Tensor = onnx::Add(%x, %z)
IRC214 %y | output C of onnx::Add must be of the same type | %x : Float() | %y : Double() = onnx::Add(%x, %x)
IRC214 %x | input input_sequence of onnx::SequenceAt cannot be Tensor; it can be seq( | %x : Tensor, %i : Long()
    | %y : Tensor = onnx::SequenceAt(%x, %i)
IRC214 %n | cannot be NoneType | %n : NoneType | %y : Tensor = onnx::Relu(%n)
IRC214 %x | input input_sequence of onnx::SequenceLength cannot be (Tensor, int)[] | %x : (Tensor, int)[]
    | %y : int = onnx::SequenceLength(%x)
IRC214 %y | output Y of onnx::Relu cannot be (Tensor) | %x : Tensor | %y : (Tensor) = onnx::Relu(%x)
IRC214 %b | %b : __torch__.B cannot be an element of __torch__.A[] | %a : __torch__.A, %b : __torch__.B
    | %y : __torch__.A[] = prim::ListConstruct(%a, %b)
IRC213 irc::slice_scatter | do not fit | %x : Tensor | %y : Tensor = irc::slice_scatter(%x)
IRC213 irc::append_ | do not fit | %x : Tensor, %n : int | %y : Tensor = irc::append_(%x, %n)
IRC215 irc::append_ | irc::append_ needs an attribute axis, an integer | %x : Tensor
    | %y : Tensor = irc::append_(%x, %x)
IRC215 irc::slice_scatter_ | needs an attribute steps, a list of integers | %x : Tensor
    | %y : Tensor = irc::slice_scatter_[starts=[0], steps=1](%x, %x)
IRC213 irc::overwrite | has 1 output, not 2 | %x : Tensor | %y : Tensor, %z : Tensor = irc::overwrite(%x, %x)
"""
"""A row: code and what the caret marks | words of the message | inputs, if any | the body, ``/`` between its lines."""


def wrong(place: str, message: str, inputs: str, text: str) -> tuple[str, ...]:
    code, caret = place.split(" ", 1)
    return body(text.replace(" / ", "\n"), "" if inputs == "-" else inputs), code, message, caret


@pytest.mark.parametrize(
    ("text", "code", "message", "caret"),
    [
        *(wrong(*row) for row in rows(REFUSED)),
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
        *(
            (
                body(f"%f : Function = prim::Constant{name}()\n  prim::CallFunction(%f)"),
                "IRC215",
                "a constant Function needs an attribute name",
                "prim::Constant",
            )
            for name in ("", "[name=1]", "[name=[1]]")
        ),
        *(
            (body(f"%y : Tensor = {kind}(%x)\n    block0():\n      -> (%x)", "%x : Tensor"), "IRC213", words, kind)
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
        *(
            (body(f"%y : Tensor = {kind}(%x)", "%x : Tensor"), "IRC217", f"knows no operator {kind}", kind)
            for kind in (f"{domain}::Ad" for domain in DOMAINS)
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


def test_types_of_very_many_parts_are_looked_into_once() -> None:
    def work(n: int) -> int:
        parts = f"  %t : ({', '.join(['Tensor'] * n)}) = prim::TupleConstruct({', '.join(['%x'] * n)})\n"
        uses = "".join(f"  %y{i} : Tensor = prim::TupleIndex(%t, %i)\n" for i in range(n))
        graph = parse_graph(f"graph(%x : Tensor, %i : int):\n{parts}{uses}  return (%y0)")
        return calls(graph.verify)

    assert work(800) < 5 * work(200)
