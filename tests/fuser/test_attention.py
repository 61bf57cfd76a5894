"""Attention becomes a group of its own: two products with a softmax between them."""

from __future__ import annotations

import re

import pytest

from irc.alias import analyze
from irc.fuser.subgraph import dissolve, make_group
from irc.ir import parse_graph, structurally_equal
from tests.fuser.helpers import fuse, kinds, the_group

INPUTS = "%q : Float(2, 3, 4, 5), %k : Float(2, 3, 5, 6), %v : Float(2, 3, 6, 7), %m : Float(4, 6), %i : Long(4)"
RESULT = f"{INPUTS}, %c : Float(2, 3, 4, 7)"


def graph(body: str, inputs: str = INPUTS) -> str:
    """IR text; types are left out of ``body``: every result is a tensor."""
    lines = [re.sub(r"^(%\w+) =", r"\1 : Tensor =", line.strip()) for line in body.strip().splitlines()]
    return "\n  ".join([f"graph({inputs}):", *lines[:-1], f"return ({lines[-1]})"])


BODY = """%s = onnx::MatMul(%q, %k)
    %a = onnx::Add(%s, %m)
    %p = onnx::Softmax(%a)
    %y = onnx::MatMul(%p, %v)
    %y"""


def test_attention_is_one_group() -> None:
    g, report = fuse(graph(BODY))
    assert kinds(g) == ["[MatMul Add Softmax MatMul]"]
    assert [v.name for v in the_group(g).inputs] == ["q", "k", "m", "v"]
    assert report.stats["alias.built"] == 1


@pytest.mark.parametrize(
    ("operators", "wanted"),
    [
        ("%t = onnx::Tanh(%s)\n%a = onnx::Where(%b, %t, %m)\n%p = onnx::Softmax(%a)", "MatMul Tanh Where Softmax"),
        ("%a = onnx::Cast[to=11](%s)\n%w = onnx::Softmax(%a)\n%p = onnx::Cast[to=1](%w)", "MatMul Cast Softmax Cast"),
        ("%p = irc::masked_softmax[axis=-1](%s)", "MatMul masked_softmax"),
        ("%r = onnx::Reshape(%s, %i)\n%a = onnx::Add(%r, %m)\n%p = onnx::Softmax(%a)", "MatMul Reshape Add Softmax"),
        ("%p = onnx::Softmax[axis=3](%s4)", "MatMul Softmax"),
        ("%p = onnx::Softmax[axis=3, since_version=11](%s4)", "MatMul Softmax"),
    ],
)
def test_what_may_lie_between_the_products(operators: str, wanted: str) -> None:
    body = BODY.replace("%a = onnx::Add(%s, %m)\n    %p = onnx::Softmax(%a)", operators)
    text = graph(body, f"{INPUTS}, %b : Bool(4, 6)")
    if "%s4" in text:
        text = text.replace("%s4", "%s").replace("%s : Tensor", "%s : Float(2, 3, 4, 6)")
    g, _ = fuse(text)
    assert kinds(g) == [f"[{wanted} MatMul]"]


def test_a_reshape_of_the_weights_joins_and_those_of_others_do_not() -> None:
    body = """%q2 = onnx::Reshape(%q, %i)
        %s = onnx::MatMul(%q2, %k)
        %r = onnx::Reshape(%s, %i)
        %a = onnx::Add(%r, %m)
        %p = onnx::Softmax(%a)
        %r2 = onnx::Reshape(%p, %i)
        %y = onnx::MatMul(%r2, %v)
        %y2 = onnx::Reshape(%y, %i)
        %y2"""
    g, _ = fuse(graph(body))
    assert kinds(g) == ["Reshape", "[MatMul Reshape Add Softmax Reshape MatMul]", "Reshape"]


NO_ATTENTION = {
    "no softmax": BODY.replace("Softmax", "Tanh"),
    "two": BODY.replace("%a = onnx::Add(%s, %m)", "%a = onnx::Softmax(%s)"),
    "another axis": BODY.replace("Softmax", "Softmax[axis=-2]"),
    "an axis of which it is not known where it lies": BODY.replace("Softmax", "Softmax[axis=3]"),
    "all axes": BODY.replace("Softmax", "Softmax[since_version=11]"),
    "scores used twice": BODY.replace("%y =", "%z = onnx::Neg(%s)\n%y =").replace("    %y\n", "").rstrip() + ", %z",
    "weights given back": BODY.rstrip() + ", %p",
    "weights on the right": BODY.replace("(%p, %v)", "(%v, %p)"),
    "weights on both sides": BODY.replace("(%p, %v)", "(%p, %p)"),
    "a power": BODY.replace("Add", "Pow"),
    "a view between": BODY.replace("%p =", "%t = onnx::Transpose(%a)\n%p =").replace("Softmax(%a)", "Softmax(%t)"),
    "a reshape between others": BODY.replace("%p =", "%t = onnx::Reshape(%a, %i)\n%p =").replace("x(%a)", "x(%t)"),
    "a sum over rows": BODY.replace("%p =", "%t = onnx::CumSum(%a, %i)\n%p =").replace("Softmax(%a)", "Softmax(%t)"),
    "queries are keys": BODY.replace("(%q, %k)", "(%q, %q)"),
    "values are a mask": BODY.replace("(%s, %m)", "(%s, %v)"),
}


@pytest.mark.parametrize("which", NO_ATTENTION)
def test_what_is_no_attention(which: str) -> None:
    """Then products have epilogues, as ever."""
    g, _ = fuse(graph(NO_ATTENTION[which]))
    assert not any(kind.count("MatMul") > 1 for kind in kinds(g))


@pytest.mark.parametrize("weight", ["k", "v"])
def test_products_with_weights_are_layers(weight: str) -> None:
    body = f"%w : Float(2, 3, 5, 6) = prim::Constant[value=splat(0.5)]()\n{BODY}"
    g, _ = fuse(graph(body.replace(f"%{weight})", "%w)")))
    assert "[MatMul Add]" in kinds(g)


TORCH = """%dim : int = prim::Constant[value=-1]()
    %none : NoneType = prim::Constant()
    %two : float = prim::Constant[value=2.]()
    %one : int = prim::Constant[value=1]()
    %single : int = prim::Constant[value=6]()
    %no : bool = prim::Constant[value=0]()
    %s = aten::matmul(%q, %k)
    %d = aten::div(%s, %two)
    %a = aten::add(%d, %m, %one)
    %w = aten::softmax(%a, %dim, %none)
    %p = aten::to(%w, %single, %no, %no, %none)
    %y = aten::matmul(%p, %v)
    %y"""


def test_attention_of_torch() -> None:
    g, _ = fuse(graph(TORCH))
    assert kinds(g) == ["[matmul div add softmax to matmul]"]
    assert [v.name for v in the_group(g).inputs] == ["q", "k", "m", "v"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%w, %single, %no, %no, %none", "%w, %m, %no, %no, %none"),  # as another tensor
        ("softmax(%a, %dim, %none)", "softmax(%a, %dim, %n)"),  # of whatever type a run is told
        ("value=-1", "value=-2"),
        ("value=-1", "value=3"),  # it is not known which axis that is
        ("aten::add(%d", "aten::add_(%d"),
        ("aten::add(%d, %m, %one)", "aten::pow(%d, %m)"),
        ("%s = aten::matmul(%q, %k)", "%s = aten::matmul(%q, %k, %c)"),  # writes to %c
        ("%y = aten::matmul(%p, %v)", "%y = aten::mv(%p, %v)"),
    ],
)
def test_what_is_no_attention_of_torch(old: str, new: str) -> None:
    text = graph(TORCH.replace(old, new), f"{INPUTS}, %c : Tensor, %n : int")
    assert text != graph(TORCH, f"{INPUTS}, %c : Tensor, %n : int")
    g, _ = fuse(text)
    assert not any(kind.count("matmul") > 1 for kind in kinds(g))


@pytest.mark.parametrize("side", ["q", "k"])
def test_products_of_torch_with_weights_are_layers(side: str) -> None:
    text = graph(TORCH).replace("%s : Tensor", "%c : Float(5, 6) = prim::Constant[value=splat(0.5)]()\n  %s : Tensor")
    g, _ = fuse(
        text.replace(f"(%{side}, %k)" if side == "q" else "(%q, %k)", "(%c, %k)" if side == "q" else "(%q, %c)")
    )
    assert not any(kind.count("matmul") > 1 for kind in kinds(g))


def test_nothing_joins_attention() -> None:
    """What scales queries and keys, makes the mask, or uses the result has groups of its own, or none."""
    body = """%f = onnx::Mul(%q, %m1)
        %n = onnx::Sub(%m, %m1)
        %n2 = onnx::Mul(%n, %m1)
        %s = onnx::MatMul(%f, %k)
        %a = onnx::Add(%s, %n2)
        %p = onnx::Softmax(%a)
        %y = onnx::MatMul(%p, %v)
        %z = onnx::Add(%y, %c)
        %z"""
    g, report = fuse(graph(body, f"{RESULT}, %m1 : Float(1)"))
    assert kinds(g) == ["Mul", "[Sub Mul]", "[MatMul Add Softmax MatMul]", "Add"]
    reasons = [note.reason for note in report.refusals]
    assert any("attention is a group of its own, up to onnx::MatMul %y" in reason for reason in reasons)


def test_several_heads_of_a_model_are_several_groups() -> None:
    body = """%s = onnx::MatMul(%q, %k)
        %p = onnx::Softmax(%s)
        %y = onnx::MatMul(%p, %v)
        %s2 = onnx::MatMul(%y, %k2)
        %p2 = onnx::Softmax(%s2)
        %y2 = onnx::MatMul(%p2, %v)
        %y2"""
    g, _ = fuse(graph(body, f"{INPUTS}, %k2 : Float(2, 3, 7, 6)"))
    assert kinds(g) == ["[MatMul Softmax MatMul]"] * 2


def test_a_product_belongs_to_one_of_them() -> None:
    """It is the last one of the first and would be the first one of the second, which stays apart."""
    body = (
        BODY.replace("    %y\n", "").rstrip()[: -len("%y")]
        + "%p2 = onnx::Softmax(%y)\n%y2 = onnx::MatMul(%p2, %c)\n%y2"
    )
    g, _ = fuse(graph(body, f"{INPUTS}, %c : Float(2, 3, 7, 8)"))
    assert kinds(g) == ["[MatMul Add Softmax MatMul]", "Softmax", "MatMul"]


@pytest.mark.parametrize(("operators", "groups"), [(15, 1), (16, 2)])
def test_not_too_much_may_lie_between_the_products(operators: int, groups: int) -> None:
    chain = "\n".join(f"%t{i} = onnx::Tanh(%{f't{i - 1}' if i else 's'})" for i in range(operators))
    body = BODY.replace("%a = onnx::Add(%s, %m)", chain).replace("Softmax(%a)", f"Softmax(%t{operators - 1})")
    g, _ = fuse(graph(body))
    assert len(kinds(g)) == groups + (groups == 2)


def test_a_write_in_between_leaves_it_apart() -> None:
    """The keys are written between the products: the first one cannot move."""
    body = """%s = onnx::MatMul(%q, %k)
        %p = onnx::Softmax(%s)
        %w = aten::relu_(%k)
        %y = onnx::MatMul(%p, %v)
        %y, %w"""
    g, report = fuse(graph(body))
    assert kinds(g) == ["MatMul", "relu_", "[Softmax MatMul]"]
    assert any("memory is written" in note.reason for note in report.refusals)


def test_a_write_to_the_mask_too() -> None:
    body = """%s = onnx::MatMul(%q, %k)
        %a = onnx::Add(%s, %m)
        %p = onnx::Softmax(%a)
        %w = aten::relu_(%m)
        %y = onnx::MatMul(%p, %v)
        %y, %w"""
    g, _ = fuse(graph(body))
    assert kinds(g) == ["[MatMul Add]", "relu_", "[Softmax MatMul]"]


def test_a_view_is_never_the_result_of_a_group() -> None:
    """The product that uses it cannot take it in; the Reshape is no group with the operator before it."""
    body = """%s = onnx::MatMul(%q, %k)
        %p = onnx::Softmax(%s)
        %r = onnx::Reshape(%p, %i)
        %w = aten::relu_(%p)
        %y = onnx::MatMul(%r, %v)
        %y, %w"""
    g, _ = fuse(graph(body))
    assert kinds(g) == ["MatMul", "Softmax", "Reshape", "relu_", "MatMul"]


def test_groups_of_others_that_return_a_view_stay_as_they_are() -> None:
    g, _ = fuse(f"""graph({INPUTS}, %x : Float(4, 6)):
  %r : Tensor = prim::FusionGroup_0(%x, %i)
  %y : Tensor = onnx::Add(%r, %m)
  return (%y)
with prim::FusionGroup_0 = graph(%x : Float(4, 6), %i : Long(4)):
  %a : Tensor = onnx::Neg(%x)
  %r : Tensor = onnx::Reshape(%a, %i)
  return (%r)""")
    assert kinds(g) == ["[Neg Reshape]", "Add"]


def test_a_group_too_small_for_it_leaves_the_first_operators_outside() -> None:
    g, report = fuse(graph(BODY), "fuse{max-size=3}")
    assert kinds(g) == ["MatMul", "[Add Softmax MatMul]"]
    assert any("more than max-size=3" in note.reason for note in report.refusals)


def test_dissolving_is_the_inverse_of_making() -> None:
    text = graph(BODY.replace("%p =", "%r = onnx::Reshape(%a, %i)\n%p =").replace("x(%a)", "x(%r)"))
    g = parse_graph(text)
    db = analyze(g)
    with db.rewrite():
        group = make_group(list(g.nodes), db)
    assert kinds(g) == ["[MatMul Add Reshape Softmax MatMul]"]
    with db.rewrite():
        dissolve(group, db)
    assert structurally_equal(g, parse_graph(text)) is None
    db.check()
    values = {value.name: value for node in g.nodes for value in node.outputs}
    assert db.may_alias(values["a"], values["r"]) and not db.may_alias(values["r"], values["p"])


def test_groups_of_attention_stay_as_they_are() -> None:
    """Another run of the pass neither takes them in nor adds to them."""
    body = BODY.replace("    %y\n", "").rstrip()[: -len("%y")] + "%z = onnx::Add(%y, %c)\n%z"
    g, _ = fuse(graph(body, RESULT), "fuse,fuse,fuse")
    assert kinds(g) == ["[MatMul Add Softmax MatMul]", "Add"]
