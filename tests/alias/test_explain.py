"""Why two values may share memory."""

import pytest

from tests.alias.helpers import Case
from tests.alias.missed import cases
from tests.graphs import ir

CASE = ir("""
    x: Tensor; n: int -> view
    t: bool = prim.Constant(value=1); z: int = prim.Constant(value=0); a = relu(x); b = sigmoid(x)
    l: "Tensor[]" = prim.ListConstruct(a); s: "Tensor[]" = append(l, b); e = __getitem__(l, z)
    p, q = prim.Loop(n, t, a, b)
    with block(i=int, u=Tensor, v=Tensor): k = neg(u); yield t, v, k
    view = t(p)
""")


ESCAPES = """
graph(%l : {held}[], %c : bool, %x : Tensor):
  %z : int = prim::Constant[value=0]()
  %a : Tensor = aten::relu(%x)
  %k : Tensor[] = prim::ListConstruct(%x)
  %e : {held} = prim::If(%c)
    block0():
      -> (%a)
    block1():
      -> (%k)
  %m : {held}[] = aten::append(%l, %{stored})
  %u : {held} = aten::__getitem__(%l, %z)
  %t : Tensor = prim::unchecked_cast(%u)
  return (%t)
"""


@pytest.mark.parametrize(
    ("held", "stored", "found"),
    [("Union(Tensor, Tensor[])", "e", {0, 7}), ("Union(Tensor, Tensor[])", "a", {0}), ("Any", "e", {0, 4})],
)
def test_facts_tell_as_what_a_value_escaped(held: str, stored: str, found: set[int]) -> None:
    c = Case(ESCAPES.format(held=held, stored=stored))
    assert set(cases(c.db, c["t"], c["a"])) == found


def test_no_facts_if_nothing_is_shared() -> None:
    c = Case(CASE)
    assert c.db.why(c["a"], c["b"]) == []
    assert c.db.why(c["z"], c["z"]) == []


def test_what_pytorch_misses_is_numbered() -> None:
    c = Case("""
        x: Tensor; any: Any -> e
        a = relu(x); same = type_as(a, x); l: "Tensor[]" = prim.ListConstruct(a); m: "Tensor[]" = broadcast_tensors(l)
        e = __getitem__(m, 0)
    """)
    assert cases(c.db, c["same"], c["a"]) == [5, 0], "its schema calls the result fresh"
    assert 5 in cases(c.db, c["e"], c["a"])
    assert 4 in cases(c.db, c["any"], c["x"]), "Any may be a tensor"
    assert set(cases(c.db, c["l"], c["a"])) == {0, 3}
