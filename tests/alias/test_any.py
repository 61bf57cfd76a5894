"""Arguments that may be anything: which overload they mean only the run can tell."""

import pytest

from irc.alias import analyze
from irc.ir import parse_graph, parse_module, types
from irc.ir.types import DictType, ListType, OptionalType, TupleType
from irc.passes import registry
from irc.passes.base import PassContext
from tests.alias.helpers import Case
from tests.alias.test_schema import overload
from tests.graphs import ir
from tests.tables import with_constants

T, INT, ANY = types.TENSOR, types.INT, types.ANY

TEXT = """
graph(%x : Tensor):
  %z : int = prim::Constant[value=0]()
  %o : int = prim::Constant[value=1]()
  %n : NoneType = prim::Constant()
  %y : Tensor = aten::relu(%x)
  %q : Tensor = aten::relu(%x)
  %k : Tensor[] = prim::ListConstruct(%y)
  %l : Tensor[] = prim::ListConstruct(%q)
  %t : Any = prim::unchecked_cast(%y)
  %a : Any = prim::unchecked_cast(%k)
  %b : Any = prim::unchecked_cast(%l)
  {}
  %w : Tensor = aten::neg_(%e)
  return (%w)
"""

TAKEN = """
  %d : Tensor[] = prim::unchecked_cast(%c)
  %e : Tensor = aten::__getitem__(%d, %z)
"""


@pytest.mark.parametrize(
    "lines",
    [
        "%e : Tensor = aten::__getitem__(%a, %z)",
        "%e : Tensor = aten::as_tensor(%t, %n, %n)",
        "%e : Tensor = aten::slice(%t, %z, %z, %o, %o)",
        "%c : Tensor[] = aten::list(%a)" + TAKEN,
        "%c : Tensor[] = aten::split(%t, %o, %z)" + TAKEN,
        "%c : Tensor[] = aten::mul(%a, %o)" + TAKEN,
        "%c : Any = aten::add(%a, %b)" + TAKEN,
        "%c : Any = aten::add(%b, %a)" + TAKEN,
        "%c : Any = aten::mul(%a, %o)" + TAKEN,
        "%c : Any = aten::slice(%a, %z, %o, %o)" + TAKEN,
        "%c : Any = prim::max(%a, %a)" + TAKEN,
        "%c : Any = aten::add_(%b, %a)\n  %e : Tensor = aten::__getitem__(%l, %o)",
    ],
)
def test_what_any_overload_may_share_is_shared(lines: str) -> None:
    c = Case(TEXT.format(lines))
    c.claims("e ~ y, y written")


def test_an_argument_that_may_be_anything_settles_nothing() -> None:
    assert overload("aten::__getitem__", ANY, INT) is None
    assert overload("aten::__getitem__", OptionalType(ANY), INT) is None
    assert overload("aten::__getitem__", ANY, types.STR) == "Dict_str"
    assert overload("aten::__getitem__", ListType(ANY), INT) == "t"
    assert overload("aten::__getitem__", DictType(types.STR, ANY), types.STR) == "Dict_str"
    assert overload("aten::add", ListType(OptionalType(ANY)), ListType(T)) == "t"
    assert overload("aten::add", TupleType((ANY,)), ListType(T)) is None
    assert overload("aten::relu", ANY) == ""


def test_what_is_read_as_a_list_and_is_none_holds_nothing() -> None:
    """The reading that dce takes away must leave no trace: the analysis that it keeps answers as a new one does."""
    text = ir("""
        x: Tensor; u: Any -> y
        y = relu(x); n: "int[]" = prim.ListConstruct(0); l: "Any[]" = prim.ListConstruct(y, n, u)
        e: Any = __getitem__(l, 0); c: "Any[]" = prim.unchecked_cast(e); w: "Any[]" = append(c, l)
        f: Any = __getitem__(c, 0)
    """)
    case = Case(text)
    assert case.alias("f", "u")
    assert not any(place.path for place in case.db.locations(case["f"]))
    module = parse_module(with_constants(text))
    ctx = PassContext(module)
    db = ctx.alias_db(module.main)
    db.check()
    registry.create("dce").run(module.main, ctx)
    assert "%f" not in str(module.main)
    assert ctx.alias_db(module.main) is db
    db.check()


@pytest.mark.parametrize(("kind", "results"), [("native_batch_norm", 3), ("batch_norm", 1), ("instance_norm", 1)])
def test_what_a_normalisation_is_given_besides_may_be_what_results_go_to(kind: str, results: int) -> None:
    of = {"native_batch_norm": "%no, %h, %h", "batch_norm": "%no, %h, %h, %no", "instance_norm": "%no, %h, %h, %no"}
    names = ", ".join(f"%y{i} : Tensor" for i in range(results))
    outs = "".join(f", %o{i}" for i in range(results))
    made = "".join(f"  %o{i} : Tensor = aten::relu(%x)\n" for i in range(results))
    text = f"""graph(%x : Tensor):
  %no : bool = prim::Constant[value=False]()
  %h : float = prim::Constant[value=0.5]()
{made}  {names} = aten::{kind}(%x, None, None, %x, %x, {of[kind]}{{}})
  return (%o0)
"""
    with_outs, without = (analyze(parse_graph(with_constants(text.format(given)))) for given in (outs, ""))
    for i in range(results):
        assert with_outs.has_writers(with_outs.graph.value(f"o{i}"))
        assert with_outs.may_alias(with_outs.graph.value(f"y{i}"), with_outs.graph.value(f"o{i}"))
        assert not without.has_writers(without.graph.value(f"o{i}"))
