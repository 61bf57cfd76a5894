"""Containers by allocation site: what they hold, and what they are told apart from."""

import numpy as np

from irc.alias import analyze
from irc.ir import Tensor, parse_module
from irc.ir.objects import Object, Strided
from irc.ir.types import ClassType
from irc.runtime.plan import lower
from tests.alias.helpers import Case
from tests.graphs import ir


def test_dictionaries() -> None:
    c = Case("""
graph(%x : Tensor):
  %k : str = prim::Constant[value="k"]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %other : Tensor = aten::relu(%x)
  %d : Dict(str, Tensor) = prim::DictConstruct(%k, %a)
   = aten::_set_item(%d, %k, %b)
  %g : Tensor = aten::__getitem__(%d, %k)
  %o : Tensor? = aten::get(%d, %k)
  %vs : Tensor[] = aten::values(%d)
  %ks : str[] = aten::keys(%d)
  %is : (str, Tensor)[] = aten::items(%d)
  %i : (str, Tensor) = aten::__getitem__(%is, 0)
  %ik : str, %iv : Tensor = prim::TupleUnpack(%i)
  return (%other)
""")
    for name in ("g", "o", "iv"):
        assert c.alias(name, "a"), name
        assert c.alias(name, "b"), name
        assert not c.alias(name, "other"), name
    for name in ("vs", "is", "i", "d"):
        assert c.contain(name, "a"), name
        assert not c.contain(name, "other"), name
    assert not c.contain("ks", "a")


def with_objects(text: str, **objects: Object) -> Case:
    return Case(text, objects=objects)


BOX = ClassType("__torch__.Box")


def test_attributes_of_the_models_own_objects() -> None:
    shared, own, other = (Tensor.of([1.0, 2.0], name) for name in ("shared", "own", "other"))
    part = Strided(Tensor.of([1.0, 2.0, 3.0], "storage"), (2,), (1,), 1)
    inner = Object(BOX, {"weight": shared, "bias": own, "list": [other, shared], "view": part})
    inner.attributes["self"] = inner
    c = with_objects(
        ir("""
            self: __torch__.Net; x: Tensor -> a
            p: "__torch__.Box" = prim.GetAttr(self, name="p"); q: "__torch__.Box" = prim.GetAttr(self, name="q")
            w = prim.GetAttr(p, name="weight"); again = prim.GetAttr(q, name="weight")
            tied = prim.GetAttr(self, name="tied"); b = prim.GetAttr(p, name="bias")
            l: "Tensor[]" = prim.GetAttr(p, name="list"); e = __getitem__(l, 0); v = prim.GetAttr(p, name="view")
            whole = prim.GetAttr(self, name="whole"); loop: "__torch__.Box" = prim.GetAttr(p, name="self")
            u = relu_(w); a = relu(x); prim.SetAttr(p, a, name="bias"); d: float = prim.GetAttr(self, name="eps")
        """),
        self=Object(
            ClassType("__torch__.Net"), {"p": inner, "q": inner, "tied": shared, "whole": part.storage, "eps": 0.1}
        ),
    )
    c.claims("w ~ again, w ~ tied, w !~ b")
    assert not c.alias("w", "x"), "what comes with the model is nobody else's"
    c.claims("e ~ w, e !~ b, v ~ whole, loop ~ p")
    assert c.alias("b", "a"), "it was set"
    c.claims("self has a, self !has x, tied written, x !written")
    assert c.db.escapes(c["a"]), "the object outlives the run"
    assert {str(x) for x in c.db.locations(c["w"])} == {'attribute @"shared" : Tensor'}
    assert {str(x) for x in c.db.locations(c["p"])} == {"attribute %self.p : __torch__.Box"}


def test_weights_in_constant_containers_are_those_of_constants() -> None:
    weights = {name: Tensor.of(np.arange(300, dtype=np.float32)) for name in "vw"}
    graph = parse_module(
        """
graph(%i : int):
  %l : Tensor[] = prim::Constant[value=[@"w", @"w"]]()
  %p : (Tensor, (Tensor, int)) = prim::Constant[value=(@"v", (@"w", 3))]()
  %w : Float(300) = prim::Constant[value=@"w"]()
  %v : Float(300) = prim::Constant[value=@"v"]()
  %z : int = prim::Constant[value=0]()
  %a : Tensor = aten::__getitem__(%l, %i)
  %b : Tensor = prim::TupleIndex(%p, %z)
  return (%a, %w, %b, %v)
""",
        weights=weights,
    ).main
    db = analyze(graph)
    a, b, p, v, w = map(graph.value, "abpvw")
    assert db.may_alias(a, w) and db.may_alias(b, v)
    assert not db.may_alias(a, v) and not db.may_alias(b, w) and not db.may_alias(v, w)
    assert db.may_contain_alias(p, w) and db.may_contain_alias(p, v)
    db.check()
    found = lower(graph).run([1])
    assert np.shares_memory(found[0], found[1]) and np.shares_memory(found[2], found[3])
