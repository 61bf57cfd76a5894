"""Containers by allocation site: what they hold, and what they are told apart from."""

from __future__ import annotations

import numpy as np

from irc.alias import analyze
from irc.ir import Tensor, parse_module
from irc.ir.objects import Object, Strided
from irc.ir.types import ClassType
from irc.runtime.plan import lower
from tests.alias.helpers import Case


def test_contents_of_lists_tuples_and_dictionaries() -> None:
    c = Case("""
graph(%x : Tensor):
  %k : str = prim::Constant[value="k"]()
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %lonely : Tensor = aten::relu(%x)
  %l : Tensor[] = prim::ListConstruct(%a, %x)
  %t : (Tensor, int) = prim::TupleConstruct(%b, %one)
  %d : Dict(str, Tensor) = prim::DictConstruct(%k, %b)
  %n : (Tensor[], Dict(str, Tensor)) = prim::TupleConstruct(%l, %d)
  %ints : int[] = prim::ListConstruct(%one)
  return (%n)
""")
    assert c.contain("l", "x")
    assert c.contain("l", "a")
    assert not c.contain("l", "b")
    assert c.contain("t", "d")
    assert c.contain("n", "a")
    assert c.contain("n", "b")
    for name in ("l", "t", "d", "n", "x"):
        assert not c.contain(name, "lonely"), name
        assert not c.contain(name, "k")
        assert not c.contain(name, "ints")
    assert not c.alias("l", "a")


def test_elements_of_different_lists_are_told_apart() -> None:
    c = Case("""
graph(%x : Tensor):
  %z : int = prim::Constant[value=0]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %la : Tensor[] = prim::ListConstruct(%a)
  %lb : Tensor[] = prim::ListConstruct(%b)
  %ea : Tensor = aten::__getitem__(%la, %z)
  %eb : Tensor = aten::__getitem__(%lb, %z)
  %w : Tensor = aten::relu_(%ea)
  return (%a, %b)
""")
    assert c.alias("ea", "a")
    assert not c.alias("ea", "eb")
    assert not c.alias("ea", "x")
    assert c.written("la")
    assert not c.written("lb")


def test_two_lists_of_one_tensor() -> None:
    c = Case("""
graph(%x : Tensor):
  %z : int = prim::Constant[value=0]()
  %a : Tensor = aten::relu(%x)
  %l : Tensor[] = prim::ListConstruct(%a)
  %m : Tensor[] = prim::ListConstruct(%a)
  %e : Tensor = aten::__getitem__(%l, %z)
  %f : Tensor = aten::__getitem__(%m, %z)
  return (%x)
""")
    assert c.alias("e", "f")
    assert c.contain("l", "m")
    assert not c.alias("l", "m")


def test_append_and_extend_put_things_in() -> None:
    c = Case("""
graph(%x : Tensor):
  %z : int = prim::Constant[value=0]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %never : Tensor = aten::relu(%x)
  %l : Tensor[] = prim::ListConstruct()
  %m : Tensor[] = prim::ListConstruct()
  %s : Tensor[] = aten::append(%l, %a)
   = aten::extend(%m, %l)
  %e : Tensor = aten::__getitem__(%m, %z)
  %p : Tensor = aten::pop(%m, %z)
  return (%never)
""")
    assert c.alias("e", "a")
    assert c.alias("p", "a")
    assert c.alias("s", "l")
    assert not c.contain("m", "never")
    assert c.written("l")
    assert not c.written("a")


def test_lists_made_from_lists_hold_the_same_things() -> None:
    c = Case("""
graph(%x : Tensor):
  %z : int = prim::Constant[value=2]()
  %n : NoneType = prim::Constant()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %l : Tensor[] = prim::ListConstruct(%a)
  %m : Tensor[] = prim::ListConstruct(%b)
  %sum : Tensor[] = aten::add(%l, %m)
  %twice : Tensor[] = aten::mul(%l, %z)
  %part : Tensor[] = aten::slice(%m, %n, %n, %z)
  %copy : Tensor[] = aten::list(%m)
  return (%sum)
""")
    assert c.contain("sum", "a")
    assert c.contain("sum", "b")
    assert c.contain("twice", "a")
    assert not c.contain("twice", "b")
    assert c.contain("part", "b")
    assert c.contain("copy", "b")
    for new in ("sum", "twice", "part", "copy"):
        for old in ("l", "m"):
            assert not c.alias(new, old)


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
  %z : int = prim::Constant[value=0]()
  %i : (str, Tensor) = aten::__getitem__(%is, %z)
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


def test_views_in_lists() -> None:
    c = Case("""
graph(%x : Tensor):
  %z : int = prim::Constant[value=2]()
  %a : Tensor = aten::relu(%x)
  %l : Tensor[] = aten::split(%a, %z, %z)
  %p : Tensor, %q : Tensor = prim::ListUnpack(%l)
  %chunk : Tensor[] = aten::chunk(%x, %z, %z)
  %w : Tensor = aten::relu_(%q)
  return (%p)
""")
    assert c.alias("p", "a") and c.alias("q", "a")
    assert not c.alias("p", "q"), "they are pieces side by side"
    assert not c.alias("l", "a"), "the list is not the tensor"
    assert c.contain("l", "a")
    assert c.written("a")
    assert not c.contain("l", "chunk")
    assert not c.written("chunk")


def test_tuples_know_their_positions() -> None:
    c = Case("""
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %t : (Tensor, Tensor) = prim::TupleConstruct(%a, %b)
  %p : Tensor, %q : Tensor = prim::TupleUnpack(%t)
  %i : Tensor = prim::TupleIndex(%t, %one)
  %w : Tensor = aten::relu_(%p)
  return (%t)
""")
    assert c.alias("p", "a")
    assert not c.alias("p", "b")
    assert c.alias("i", "b")
    assert not c.alias("i", "a")
    assert c.written("a")
    assert not c.written("b")
    assert c.written("t"), "one of its elements is"


def test_tuples_made_in_both_branches() -> None:
    c = Case("""
graph(%x : Tensor, %y : bool):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %n : Tensor = aten::relu(%x)
  %t : (Tensor, Tensor) = prim::If(%y)
    block0():
      %s : (Tensor, Tensor) = prim::TupleConstruct(%a, %a)
      -> (%s)
    block1():
      %u : (Tensor, Tensor) = prim::TupleConstruct(%a, %b)
      -> (%u)
  %p : Tensor, %q : Tensor = prim::TupleUnpack(%t)
  return (%t)
""")
    assert c.alias("p", "a")
    assert not c.alias("p", "b")
    assert c.alias("q", "b")
    assert c.contain("t", "b")
    assert not c.contain("t", "n")


def test_nested_lists() -> None:
    c = Case("""
graph(%x : Tensor):
  %z : int = prim::Constant[value=0]()
  %a : Tensor = aten::relu(%x)
  %n : Tensor = aten::relu(%x)
  %l : Tensor[] = prim::ListConstruct(%a)
  %ll : Tensor[][] = prim::ListConstruct(%l)
  %lll : Tensor[][][] = prim::ListConstruct(%ll)
  %f : Tensor[][] = aten::__getitem__(%lll, %z)
  %g : Tensor[] = aten::__getitem__(%f, %z)
  %e : Tensor = aten::__getitem__(%g, %z)
  %s : Tensor[] = aten::append(%g, %x)
  %w : Tensor = aten::relu_(%e)
  return (%n)
""")
    assert c.alias("f", "ll")
    assert c.alias("g", "l")
    assert c.alias("e", "a")
    assert c.alias("e", "x"), "it was put in through g"
    assert c.written("lll")
    assert not c.contain("lll", "n")


def test_lists_that_a_loop_fills() -> None:
    c = Case("""
graph(%x : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %z : int = prim::Constant[value=0]()
  %l : Tensor[] = prim::ListConstruct()
  %m : Tensor[] = prim::ListConstruct()
  %last : Tensor[] = prim::Loop(%n, %t, %l)
    block0(%i : int, %u : Tensor[]):
      %a : Tensor = aten::relu(%x)
      %s : Tensor[] = aten::append(%u, %a)
      -> (%t, %m)
  %e : Tensor = aten::__getitem__(%last, %z)
  return (%e)
""")
    assert c.alias("e", "a")
    assert c.contain("l", "a")
    assert c.contain("m", "a"), "the second iteration appends to m"
    assert not c.contain("l", "x")


def test_lists_that_hold_each_other() -> None:
    c = Case("""
graph(%x : Tensor):
  %z : int = prim::Constant[value=0]()
  %a : Tensor = aten::relu(%x)
  %n : Tensor = aten::relu(%x)
  %p : Any[] = prim::ListConstruct(%a)
  %q : Any[] = prim::ListConstruct(%p)
  %s : Any[] = aten::append(%p, %q)
  %e : Any = aten::__getitem__(%p, %z)
  %w : Tensor = aten::relu_(%a)
  return (%n)
""")
    assert c.contain("p", "q")
    assert c.contain("q", "a")
    assert c.alias("e", "q")
    assert c.alias("e", "a")
    assert c.written("q")
    assert not c.contain("q", "n")


def test_attributes_of_unknown_objects_may_be_tied() -> None:
    c = Case("""
graph(%self : __torch__.M, %x : Tensor):
  %w : Tensor = prim::GetAttr[name="weight"](%self)
  %b : Tensor = prim::GetAttr[name="bias"](%self)
  %a : Tensor = aten::relu(%x)
   = prim::SetAttr[name="cache"](%self, %a)
  %c : Tensor = prim::GetAttr[name="cache"](%self)
  %n : Tensor = aten::relu(%x)
  return (%n)
""")
    assert c.alias("w", "b")
    assert c.alias("w", "x")
    assert c.alias("c", "a")
    assert not c.alias("c", "n")
    assert c.db.is_mutable(c.node("prim::SetAttr"))


def test_attributes_of_objects_that_the_graph_makes() -> None:
    c = Case("""
graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %o : __torch__.Box = prim::CreateObject()
   = prim::SetAttr[name="p"](%o, %a)
   = prim::SetAttr[name="q"](%o, %b)
  %p : Tensor = prim::GetAttr[name="p"](%o)
  %q : Tensor = prim::GetAttr[name="q"](%o)
  return (%x)
""")
    assert c.alias("p", "a")
    assert not c.alias("p", "q")
    assert c.contain("o", "b")
    assert not c.contain("o", "x")


def test_onnx_sequences_and_optionals() -> None:
    c = Case("""
graph(%x : Float(2), %y : Float(2), %i : Long()):
  %a : Float(2) = onnx::Relu(%x)
  %b : Float(2) = onnx::Relu(%y)
  %n : Float(2) = onnx::Relu(%y)
  %s : Float(2)[] = onnx::SequenceConstruct(%a)
  %t : Float(2)[] = onnx::SequenceInsert(%s, %b)
  %e : Float(2) = onnx::SequenceAt(%t, %i)
  %c : Float(2) = onnx::ConcatFromSequence[axis=0](%t)
  %o : Float(2)? = onnx::Optional(%b)
  %g : Float(2) = onnx::OptionalGetElement(%o)
  %p : Float(1)[] = onnx::SplitToSequence(%a)
  return (%e, %n)
""")
    assert c.alias("e", "a")
    assert c.alias("e", "b")
    assert not c.alias("s", "t")
    assert not c.contain("s", "b")
    assert c.alias("g", "b")
    assert c.contain("p", "a")
    assert not c.alias("c", "a")
    for name in ("s", "t", "e", "g", "p"):
        assert not c.contain(name, "n"), name


def with_objects(text: str, **objects: Object) -> Case:
    return Case(text, objects=objects)


BOX = ClassType("__torch__.Box")


def test_attributes_of_the_models_own_objects() -> None:
    shared, own, other = (Tensor.of([1.0, 2.0], name) for name in ("shared", "own", "other"))
    part = Strided(Tensor.of([1.0, 2.0, 3.0], "storage"), (2,), (1,), 1)
    inner = Object(BOX, {"weight": shared, "bias": own, "list": [other, shared], "view": part})
    inner.attributes["self"] = inner
    c = with_objects(
        """
graph(%self : __torch__.Net, %x : Tensor):
  %z : int = prim::Constant[value=0]()
  %p : __torch__.Box = prim::GetAttr[name="p"](%self)
  %q : __torch__.Box = prim::GetAttr[name="q"](%self)
  %w : Tensor = prim::GetAttr[name="weight"](%p)
  %again : Tensor = prim::GetAttr[name="weight"](%q)
  %tied : Tensor = prim::GetAttr[name="tied"](%self)
  %b : Tensor = prim::GetAttr[name="bias"](%p)
  %l : Tensor[] = prim::GetAttr[name="list"](%p)
  %e : Tensor = aten::__getitem__(%l, %z)
  %v : Tensor = prim::GetAttr[name="view"](%p)
  %whole : Tensor = prim::GetAttr[name="whole"](%self)
  %loop : __torch__.Box = prim::GetAttr[name="self"](%p)
  %u : Tensor = aten::relu_(%w)
  %a : Tensor = aten::relu(%x)
   = prim::SetAttr[name="bias"](%p, %a)
  %d : float = prim::GetAttr[name="eps"](%self)
  return (%a)
""",
        self=Object(
            ClassType("__torch__.Net"),
            {"p": inner, "q": inner, "tied": shared, "whole": part.storage, "eps": 0.1},
        ),
    )
    assert c.alias("w", "again")
    assert c.alias("w", "tied")
    assert not c.alias("w", "b")
    assert not c.alias("w", "x"), "what comes with the model is nobody else's"
    assert c.alias("e", "w")
    assert not c.alias("e", "b")
    assert c.alias("v", "whole")
    assert c.alias("loop", "p")
    assert c.alias("b", "a"), "it was set"
    assert c.contain("self", "a")
    assert not c.contain("self", "x")
    assert c.written("tied")
    assert not c.written("x")
    assert c.db.escapes(c["a"]), "the object outlives the run"
    assert {str(x) for x in c.db.locations(c["w"])} == {'attribute @"shared" : Tensor'}
    assert {str(x) for x in c.db.locations(c["p"])} == {"attribute %self.p : __torch__.Box"}


def test_objects_that_escape() -> None:
    c = with_objects(
        """
graph(%self : __torch__.Net, %x : Tensor):
  %r : Tensor = foreign::op(%self)
  %w : Tensor = prim::GetAttr[name="weight"](%self)
  %a : Tensor = aten::relu(%x)
  return (%a)
""",
        self=Object(ClassType("__torch__.Net"), {"weight": Tensor.of([1.0, 2.0], "weight")}),
    )
    assert c.alias("r", "w")
    assert c.alias("w", "x"), "unknown code may have set the attribute"
    assert c.written("w")
    assert not c.alias("w", "a")


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
