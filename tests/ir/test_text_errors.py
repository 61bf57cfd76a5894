"""IR text that is wrong: where and what, limits, no quadratic time, no other exception."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.errors import Error
from irc.ir import Graph, parse_graph, structurally_equal
from tests.effort import examples
from tests.ir import strategies
from tests.ir.helpers import body


def read(text: str) -> tuple[Error | None, Graph | None]:
    """The graph in ``text``, or why there is none."""
    try:
        return None, parse_graph(text)
    except Error as error:
        return error, None


@pytest.mark.parametrize(
    ("text", "code", "place", "message"),
    [
        ("", "IRC110", "1:1", "expected 'graph('"),
        ("def f():", "IRC110", "1:1", "expected 'graph('"),
        ("graph(%x : Tensor", "IRC110", "1:18", "expected ',' or ')' after a parameter"),
        ("graph(%x : Tensor)\n  return (%x)", "IRC110", "2:3", "expected ':' after the parameters"),
        ("graph(%x : ):", "IRC110", "1:12", "expected a type"),
        ("graph(%x : Float(2, -1)):", "IRC110", "1:21", "expected a dimension"),
        ("graph(x):", "IRC110", "1:7", "expected a parameter"),
        (body("%y : Tensor"), "IRC110", "3:3", "expected '=' and an operator"),
        (body("%y : Tensor = relu()"), "IRC110", "2:17", "expected an operator"),
        (body("%y : Tensor = ^Fn[inplace=0](3)()"), "IRC110", "2:17", "expected an operator"),
        (body("%y : Tensor = my::op[a]()"), "IRC110", "2:24", "expected an attribute"),
        (body("%y : Tensor = my::op[a=]()"), "IRC110", "2:26", "expected a value"),
        (body("%y : Tensor = my::op[a=1 b=2]()"), "IRC110", "2:26", "expected a value"),
        (body("%y : Tensor = my::op[a=1, a=2]()"), "IRC112", "2:29", "given twice"),
        (body('%y : Tensor = my::op[a="x]()'), "IRC110", "2:26", "expected a value"),
        (body(r'%y : Tensor = my::op[a="\q"]()'), "IRC110", "2:27", r"unknown escape \q"),
        (body("%y : Tensor = my::op[a=18446744073709551616]()"), "IRC113", "2:26", "64 bits"),
        (body("%y : Tensor = my::op[since_version=1.]()"), "IRC110", "2:24", "must be an integer"),
        (body("%y : Tensor = my::op[a=<Graph_0>]()"), "IRC111", "2:17", "'with Graph_0 = graph(...)' is missing"),
        (body("%y : Tensor = my::op[a=[<Graph_0>]]()"), "IRC110", "2:27", "expected a value"),
        (body("%y : Tensor = my::op[a=<Graph_0>, b=<Graph_0>]()"), "IRC112", "2:17", "Graph_0 is referred to twice"),
        (body("%y : Tensor = my::op[a={[1]: 2}]()"), "IRC110", "2:27", "[1] cannot be a key"),
        (body("%y : Tensor = my::op[a={1: 2, [1]: 2}]()"), "IRC110", "2:33", "[1] cannot be a key"),
        (body('%y : Tensor = my::op[a={"b": 2, "c": 3, "b": 2}]()'), "IRC112", "2:43", "the key 'b' is given twice"),
        (body("%y : Tensor = my::op[a={1: 2, True: 3}]()"), "IRC112", "2:33", "the key True is given twice"),
        (body("my::op(%x # %y\n, %z)", "%x : int"), "IRC111", "3:3", "%z is not defined before this"),
        (body("%y : Tensor = my::op(%x)"), "IRC111", "2:24", "%x is not defined before this"),
        (body("%y : Tensor = my::op(%y)"), "IRC111", "2:24", "%y is not defined before this"),
        (body("my::op(x)"), "IRC110", "2:9", "expected values in brackets"),
        (body("my::op() my::op()"), "IRC110", "2:12", "expected the end of the line"),
        (body("prim::Return()"), "IRC110", "2:3", "cannot be written"),
        (body("-> ()"), "IRC110", "2:3", "expected 'return' to end this graph"),
        (body("block0():"), "IRC110", "2:3", "must follow the node"),
        (body("my::op()\n    block0():"), "IRC110", "4:3", "expected '->' to end this block"),
        (body("my::op()\n", "%x : int, %x : int"), "IRC112", "1:17", "%x is a parameter twice"),
        (body("%x : int = my::op()", "%x : int"), "IRC112", "2:3", "%x is defined twice"),
        (body("%x : int, %x : int = my::op()"), "IRC112", "2:13", "%x is defined twice"),
        (body('%"" : int = my::op()'), "IRC112", "2:3", "cannot be empty"),
        (body("my::op()") + "x", "IRC110", "4:1", "expected 'graph('"),
        (body("my::op()") + "graph main():\n  return ()\n", "IRC112", "4:1", "two graphs called 'main'"),
        (body("my::op()") + "with my::op_0 = graph():\n  return ()\n", "IRC111", "4:6", "refers to my::op_0"),
        (body("%w : Float(2) = prim::Constant[value=tensor([1.])]()"), "IRC114", "2:40", "1 element for a tensor of 2"),
        (body("%w : Tensor = aten::f() # : int"), "IRC110", "2:26", "must tell types of the values before it"),
        (body("%w : Tensor = aten::f() # : Float, int"), "IRC110", "2:26", "such as '# : Tensor'"),
        (body("%w : Tensor = aten::f() # : \n"), "IRC110", "2:26", "must tell types"),
        (body("%w : Float = prim::Constant[value=splat(1.)]()"), "IRC114", "2:37", "needs its exact type"),
        (body("%w : Byte(1) = prim::Constant[value=tensor([300])]()"), "IRC114", "2:39", "300 does not fit"),
        (body("%w : Half(1) = prim::Constant[value=tensor([1e6])]()"), "IRC114", "2:39", "does not fit"),
        (body('%w : Half(1) = prim::Constant[value=tensor(["a"])]()'), "IRC114", "2:39", "cannot be an element"),
        (body("%w : Long(1, 1) = prim::Constant[value=tensor([[1]])]()"), "IRC110", "2:50", "elements are in one list"),
        (body("%w : Int4(1) = prim::Constant[value=splat(8)]()"), "IRC114", "2:39", "does not fit in a Int4"),
        (body("%w : Float(1) = prim::Constant[value=tensor([1e400])]()"), "IRC113", "2:48", "64-bit float"),
        (body("%w : ComplexFloat() = prim::Constant[value=splat(-1e400+1.j)]()"), "IRC113", "2:52", "64-bit float"),
        (body("my::op[alpha=1e400]()"), "IRC113", "2:16", "does not fit in a 64-bit float"),
        (body("my::op[alpha=nan(0x0)]()"), "IRC110", "2:16", "nan(0x0) are the bits of no NaN"),
        (body("my::op[alpha=nan(0x2)+1.j]()"), "IRC110", "2:16", "nan(0x2) are the bits of no NaN"),
        (body("my::op[alpha=1.+nan(0x1)j]()"), "IRC110", "2:18", "nan(0x1) are the bits of no NaN"),
        (body("my::op[alpha=-nan(0x7ff8000000000001)]()"), "IRC110", "2:16", "its sign among them"),
        (body("%w : Long(1) = prim::Constant[value=tensor([nan(0x1)])]()"), "IRC114", "2:39", "nan(0x1) cannot be"),
        (body("%w : Bool(1) = prim::Constant[value=tensor([nan(0x1)])]()"), "IRC114", "2:39", "nan(0x1) cannot be"),
        (body("%w : Half(1) = prim::Constant[value=tensor([nan(0x3c00)])]()"), "IRC114", "2:39", "of no NaN of a Half"),
        (body("%w : Half(1) = prim::Constant[value=tensor([nan(0x17e01)])]()"), "IRC114", "2:39", "more bits than a"),
        (body("%w : Float4_e2m1fn(1) = prim::Constant[value=tensor([nan(0xf)])]()"), "IRC114", "2:48", "of no NaN"),
        (body("%w : Half(1) = prim::Constant[value=tensor([-nan(0x7e01)])]()"), "IRC110", "2:47", "its sign among"),
        (body("%w : Long(2) = prim::Constant[value={3}]()"), "IRC114", "2:39", "1 element for a tensor of 2"),
        (body("%w : Float(9999999999, 9999999999) = prim::Constant[value=splat(1)]()"), "IRC113", "2:61", "2**63"),
    ],
)
def test_errors_say_where_and_what(text: str, code: str, place: str, message: str) -> None:
    with pytest.raises(Error) as caught:
        parse_graph(text, filename="f.ir")
    error = caught.value
    assert (error.code, error.where) == (code, f"f.ir:{place}")
    first, line, caret = error.message.split("\n")
    assert message in first
    row, column = map(int, place.split(":"))
    assert line.strip() == (text.split("\n")[row - 1].strip() if text else "")
    assert caret == " " * (3 + column) + "^"


def test_values_of_blocks_are_visible_inside_only() -> None:
    text = """\
graph(%c : bool):
  %r : int = prim::If(%c)
    block0():
      %a : int = prim::Constant[value=1]()
      -> (%a)
    block1():
      -> ({})
  %s : int = my::op({})
  return ()
"""
    for inner, outer, wrong in (("%a", "%r", "%a"), ("%c", "%a", "%a"), ("%r", "%r", "%r")):
        with pytest.raises(Error, match=f"IRC111.*{wrong} is not visible here"):
            parse_graph(text.format(inner, outer))
    parse_graph(text.format("%c", "%r"))


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("graph(%x : int" + "[]" * 64 + "):", "types nest deeper than 64"),
        ("graph(%x : " + "(" * 100_000, "types nest deeper than 64"),
        ("graph(%x : " + "Dict(int, " * 100_000, "types nest deeper than 64"),
        (body("my::op[a=" + "[" * 100_000), "values nest deeper than 64"),
        (body("my::op[a=" + "{" * 100_000), "values nest deeper than 64"),
        (body("my::op[a=" + "annotate(int, " * 100_000), "values nest deeper than 64"),
        (body("".join(f"my::op()\n block{i}():\n" for i in range(100_000))), "blocks nest deeper than 200"),
        (body("my::op()\n" + " block():\n -> ()\n" * 100_000), "a node has more than 1000 blocks"),
        (body("a::b_0()") + "with a::b_0 = graph():\n  a::b_0()\n  return ()\n" * 1000, "deeper than 16 levels"),
    ],
    ids=lambda v: v[:20],
)
def test_deep_nesting_is_refused(text: str, limit: str) -> None:
    with pytest.raises(Error, match=f"IRC113.*{limit}"):
        parse_graph(text)


@pytest.mark.parametrize("tensor", ["splat(1.)", "tensor([1.])", '@"w"', "{1.}", " 1 [ CPUFloatType{SIZES} ]"])
def test_tensors_of_more_dimensions_than_numpy_has_are_refused(tensor: str) -> None:
    sizes = ",".join("1" * 65)
    text = body(f"%w : Float({sizes}) = prim::Constant[value={tensor.replace('SIZES', sizes)}]()")
    with pytest.raises(Error, match=r"IRC113.*64 dimensions, not 65"):
        parse_graph(text)


def test_nesting_up_to_the_limits_is_read() -> None:
    deep = "int" + "[]" * 63
    value = "[" * 64 + "1." + "]" * 64
    depth = 199
    opened = "".join(f"my::op[a={value}]()\n block0(%x{i} : {deep}):\n" for i in range(depth))
    graph = parse_graph(body(opened + "-> ()\n" * depth))
    graph.verify()
    graph.copy().verify()
    assert structurally_equal(parse_graph(str(graph)), graph) is None


N = 50_000


@pytest.mark.parametrize(
    "text",
    [
        body("my::op[a=" + "1" * N + "x]()"),
        body("my::op[a=1." + "1" * N + "x]()"),
        body("my::op(), scope: " + " " * N),
        body("my::op(), scope: a" + " " * N + "b"),
        body("my::op()" + " " * N + "!"),
        body("my::op[a=[" + "(1,2)," * N + "?]]()"),
        body("my::op[" + ",".join(f"a{i}=(1,)" for i in range(N // 10)) + ",?]()"),
        body("%c : Float(2) = prim::Constant[value=" + " 1" * N + " [ CPUFloat{2} ]]()"),
        'graph(%"' + "\\" * N,
        "graph(" + " \n" * N + "!",
        "graph(%x : Float(" + "1," * N + "!",
        "graph():\n  " + "a" * N,
        "graph():\n  " + "a::" * N,
        "graph():\n  a::" + "_1" * N,
        "graph" + "#\n" * N + "!",
        body("my::op(" + "%x #\n," * N + "!)", "%x : int"),
        body("my::op[a=1" + "#\n" * N + "!]()"),
        body("my::op[a=[" + "1 #\n," * N + "!]]()"),
        body("%y : Float(2" + ", 2 #\n" * N + "! = my::op()"),
    ],
    ids=range(19),
)
def test_bad_text_is_refused_in_linear_time(text: str) -> None:
    # No clock here: an expression that backtracks over these would take minutes to hours.
    refusal, _ = read(text)
    assert refusal is None or refusal.code in ("IRC110", "IRC113")


@examples(60)
@given(strategies.graphs(), st.data())
def test_damaged_text_gives_errors_only(graph: Graph, data: st.DataObject) -> None:
    text = str(graph)
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 20))
    new = data.draw(st.sampled_from(["", "(", ")", "[", "]", '"', "%", "\\", "=", "1", "<", "->", "\n", "#", "e"]))
    damaged = text[:at] + new + text[at + cut :]
    refusal, found = read(damaged)
    if refusal is not None:
        assert refusal.code.startswith("IRC11")
        assert refusal.where.startswith("<text>:")
    else:
        assert found is not None
        assert structurally_equal(parse_graph(str(found)), found) is None
