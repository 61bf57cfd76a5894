"""Passes on graphs that change shapes and strides of tensors in place: two tensors of one memory stay two."""

import numpy as np
import pytest

import irc
from irc.ir import parse_module

TURNS = {"aten::t_": "", "aten::transpose_": ", %zero, %one", "aten::squeeze_": "", "aten::unsqueeze_": ", %zero"}

VIEWS = {
    "aten::t": "",
    "aten::detach": "",
    "aten::alias": "",
    "aten::unsqueeze": ", %one",
    "aten::permute": ", %order",
    "aten::view": ", %order",
    "aten::transpose": ", %zero, %one",
}

HEAD = """
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %order : int[] = prim::ListConstruct(%one, %zero)
  %sizes : int[] = prim::ListConstruct(%one, %one)
"""


def program(view: str, turn: str, of: str, inside: bool) -> str:
    """Two equal views of ``of``, one of which is turned; ``inside``: in a function that returns both to its caller."""
    more = VIEWS[view].replace("%order", "%sizes" if view == "aten::view" else "%order")
    views = f"  %a : Tensor = {view}({of}{more})\n  %b : Tensor = {view}({of}{more})\n"
    turned = f"  %r : Tensor = {turn}(%a{TURNS[turn]})\n"
    y = "  %y : Tensor = aten::neg(%x)\n"
    if not inside:
        return f"graph(%x : Tensor):{HEAD}{y}{views}{turned}  return (%a, %b, %y)\n"
    call = '  %f : Function = prim::Constant[name="f"]()\n  %a : Tensor, %b : Tensor = prim::CallFunction(%f, %x)\n'
    called = f"graph f(%x : Tensor):{HEAD}{y}{views}  return (%a, %b)\n"
    return f"graph(%x : Tensor):{HEAD}{y}{call}{turned}  return (%a, %b)\n{called}"


@pytest.mark.covering(2)
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("of", ["%x", "%y"])
@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("view", VIEWS)
def test_two_views_stay_two_tensors(view: str, turn: str, of: str, inside: bool) -> None:
    shape = (1, 1) if view == "aten::view" or turn == "aten::squeeze_" else (2, 3)
    if turn == "aten::t_" and view == "aten::unsqueeze":
        shape = (3,)
    x = np.arange(float(np.prod(shape)), dtype=np.float32).reshape(shape)
    text = program(view, turn, of, inside)
    plain, *others = (
        irc.compile(parse_module(text), passes=passes).run({"x": x})
        for passes in ("", "cse", "inline,cse,dce", "default")
    )
    a, b = plain["a"], plain["b"]
    assert a.shape != b.shape or shape == (1, 1)
    for found in others:
        assert {k: v.shape for k, v in found.items()} == {k: v.shape for k, v in plain.items()}
        assert all(np.array_equal(found[k], v) for k, v in plain.items())


ITSELF = {
    "prim::ListUnpack(aten::broadcast_tensors(%xs))": (2, 3),
    "aten::positive(%x)": (2, 3),
    "aten::lift_fresh(%x)": (2, 3),
    "aten::contiguous(%x, %zero)": (2, 3),
    "aten::flatten(%x, %one, %one)": (2, 3),
    "aten::type_as(%x, %x)": (2, 3),
    "aten::to(%x, %x)": (2, 3),
    "aten::to(%x, %false, %false)": (2, 3),
    "aten::cpu(%x)": (2, 3),
    "aten::real(%x)": (2, 3),
    "aten::resolve_conj(%x)": (2, 3),
    "aten::conj_physical(%x)": (2, 3),
    "aten::dropout(%x, %half, %false)": (2, 3),
    "aten::dropout(%x, %half, %true)": (0, 3),
    "aten::alpha_dropout(%x, %half, %true)": (0, 3),
    "aten::diff(%x)": (2, 0),
    "aten::atleast_1d(%x)": (2, 3),
    "aten::atleast_2d(%x)": (2, 3),
    "aten::cartesian_prod(%xs)": (3,),
}
"""What gives an operand of a shape itself."""

ANOTHER = {
    "aten::t(%x)": (1, 1),
    "aten::expand(%x, %minus)": (2, 3),
    "aten::expand_as(%x, %x)": (2, 3),
    "aten::view(%x, %sizes)": (1, 1),
    "aten::reshape(%x, %shape)": (2, 3),
    "aten::squeeze(%x)": (2, 3),
    "aten::slice(%x)": (2, 3),
    "aten::detach(%x)": (2, 3),
    "aten::alias(%x)": (2, 3),
    "aten::data(%x)": (2, 3),
    "aten::view_as(%x, %x)": (2, 3),
    "aten::broadcast_to(%x, %shape)": (2, 3),
    "aten::narrow(%x, %zero, %zero, %two)": (2, 3),
    "aten::movedim(%x, %zero, %zero)": (2, 3),
    "aten::as_strided(%x, %shape, %steps)": (2, 3),
}
"""What gives a new tensor of the same shape, which shows the same memory."""


def turned(call: str, shape: tuple[int, ...]) -> list[dict[str, np.ndarray]]:
    """The operand, and what ``call`` gives of it, after the operand has got one more dimension, and a write."""
    made = f"  %r : Tensor = {call}\n"
    if call.startswith("prim::ListUnpack"):
        made = f"  %rs : Tensor[] = {call.partition('(')[2][:-1]}\n  %r : Tensor = prim::ListUnpack(%rs)\n"
    text = f"""graph(%x : Tensor):{HEAD}
  %two : int = prim::Constant[value=2]()
  %three : int = prim::Constant[value=3]()
  %half : float = prim::Constant[value=0.5]()
  %false : bool = prim::Constant[value=0]()
  %true : bool = prim::Constant[value=1]()
  %less : int = prim::Constant[value=-1]()
  %minus : int[] = prim::ListConstruct(%less, %less)
  %shape : int[] = prim::ListConstruct(%two, %three)
  %steps : int[] = prim::ListConstruct(%three, %one)
  %xs : Tensor[] = prim::ListConstruct(%x)
{made}  %w : Tensor = aten::unsqueeze_(%x, %zero)
  %v : Tensor = aten::add_(%x, %one, %one)
  return (%x, %r)
"""
    x = np.arange(float(np.prod(shape)), dtype=np.float32).reshape(shape)
    return [irc.compile(parse_module(text), passes=passes).run({"x": x}) for passes in ("", "cse,dce", "default")]


@pytest.mark.parametrize(("call", "shape"), ITSELF.items())
def test_a_result_that_is_an_operand_changes_its_shape_with_it(call: str, shape: tuple[int, ...]) -> None:
    for found in turned(call, shape):
        assert found["x"].shape == found["r"].shape == (1, *shape)
        assert np.array_equal(found["x"], found["r"])


@pytest.mark.parametrize(("call", "shape"), ANOTHER.items())
def test_a_new_tensor_keeps_its_shape(call: str, shape: tuple[int, ...]) -> None:
    for found in turned(call, shape):
        assert found["x"].shape == (1, *shape) and found["r"].shape == shape
        assert np.array_equal(found["x"][0], found["r"]), "both see the write"


CONJUGATED = """
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %f : Function = prim::Constant[name="f"]()
  %y : Tensor = aten::mul(%x, %one)
  %c : Tensor = prim::CallFunction(%f, %y)
  {write}
  return (%y, %c)
graph f(%x : Tensor):
  %c : Tensor = {view}(%x)
  return (%c)
"""


@pytest.mark.parametrize("view", ["aten::conj", "aten::_conj", "aten::mH"])
def test_a_conjugate_that_a_caller_writes_is_no_copy(view: str) -> None:
    """It is refused, as NumPy has no such views; where nothing is written, a copy will do."""
    x = np.array([[1 + 2j, 3 - 1j], [2j, 1]], np.complex64)
    text = CONJUGATED.replace("{view}", view)
    written = text.replace("{write}", "%w : Tensor = aten::add_(%c, %one, %one)")
    for passes in ("", "canonicalize", "default"):
        with pytest.raises(irc.Error, match="IRC423"):
            irc.compile(parse_module(written), passes=passes).run({"x": x})
    read = irc.compile(parse_module(text.replace("{write}", "")), passes="default").run({"x": x})
    assert np.array_equal(read["c"], x.conj().T if view == "aten::mH" else x.conj())
