"""Lists and dictionaries are of one type: which they are at run time is what the alias analysis takes them to be."""

import itertools
from typing import Any

import numpy as np
import pytest

import irc
from irc.alias import analyze
from irc.alias.memory_types import overlap
from irc.errors import Error
from irc.ir import parse_graph, parse_module, parse_type

X = np.ones(2, np.float32)

CONSTANTS = """
  %n : NoneType = prim::Constant()
  %o : int = prim::Constant[value=1]()
  %z : int = prim::Constant[value=0]()
  %s : str = prim::Constant[value="k"]()
"""

EMPTY: dict[str, str] = {
    **{
        f"{elem}[]": "prim::ListConstruct()"
        for elem in (
            *("Tensor", "Tensor?", "int", "int?", "Any", "Union(int, Tensor)", "Union(Tensor, str)", "Tensor[]"),
            *("Tensor?[]", "(Tensor, int)", "(Tensor?, int)", "Dict(str, Tensor)", "Dict(str, Tensor?)"),
        )
    },
    **{f"Dict(str, {v})": "prim::DictConstruct()" for v in ("Tensor", "Tensor?", "Tensor[]", "Tensor?[]", "int")},
}
"""What makes an empty container of each type: nothing that it holds tells which it is."""

PAIRS = [(a, b) for a, b in itertools.product(EMPTY, EMPTY) if "Any" not in a + b]


def results(text: str, feeds: dict[str, Any], tmp_path: Any = None) -> list[dict[str, Any]]:
    """The results without passes and by default; saved and loaded, too, if there is a folder."""
    models = [irc.compile(parse_module(text), pipeline) for pipeline in ("none", "default")]
    if tmp_path is not None:
        for i, model in enumerate(list(models)):
            model.save(tmp_path / f"{i}.irc")
            models.append(irc.load(tmp_path / f"{i}.irc"))
    return [model.run(feeds) for model in models]


@pytest.mark.parametrize("first", EMPTY)
def test_an_empty_container_is_of_the_types_that_overlap_its_own_and_no_other(first: str) -> None:
    others = [b for a, b in PAIRS if a == first]
    if not others:
        return
    asked = "".join(f"  %b{i} : bool = prim::isinstance[types=[{b}]](%u)\n" for i, b in enumerate(others))
    names = ", ".join(f"%b{i}" for i in range(len(others)))
    text = (
        f"graph(%x : Tensor):{CONSTANTS}  %l : {first} = {EMPTY[first]}\n"
        f"  %u : Any = prim::unchecked_cast(%l)\n{asked}  return ({names})\n"
    )
    for found in results(text, {"x": X}):
        assert [*found.values()] == [overlap(parse_type(first), parse_type(b)) for b in others]


@pytest.mark.parametrize(("elem", "held", "put"), [("Tensor", "Tensor?", "%n"), ("Tensor?", "Tensor", "%x")])
@pytest.mark.parametrize("of", ["{}[]", "{}[][]", "Dict(str, {})"])
def test_what_is_written_through_one_type_is_not_seen_through_another(elem: str, held: str, put: str, of: str) -> None:
    """If what was taken for a list of ``held`` could be one of ``elem``, the analysis would have missed the write."""
    one, other = of.format(elem), of.format(held)
    make = "prim::DictConstruct" if of.startswith("Dict") else "prim::ListConstruct"
    if of.endswith("[][]"):
        made = f"    %w : {held}[] = prim::ListConstruct({put})\n          %v : {other} = aten::append(%c, %w)"
    elif of.startswith("Dict"):
        made = f"    aten::_set_item(%c, %s, {put})"
    else:
        made = f"    %v : {other} = aten::append(%c, {put})"
    text = f"""graph(%x : Tensor, %u : Any, %a : {one}, %m : {other}):{CONSTANTS}
      %l : {one} = {make}()
      %e : Any[] = prim::ListConstruct(%l, %u)
      %t : Any = aten::__getitem__(%e, %z)
      %b : bool = prim::isinstance[types=[{other}]](%t)
      prim::If(%b)
        block0():
          %c : {other} = prim::unchecked_cast(%t)
      {made}
          -> ()
        block1():
          -> ()
      %k : int = aten::len(%l)
      return (%k)
    """
    graph = parse_graph(text)
    graph.verify()
    db = analyze(graph)
    assert not db.may_alias(graph.value("m"), graph.value("a"))
    empty: Any = {} if of.startswith("Dict") else []
    assert [r["k"] for r in results(text, {"x": X, "u": empty, "a": empty, "m": empty})] == [0, 0]


@pytest.mark.parametrize("type", ["Tensor?[]", "(int?)[]", "Union(int, Tensor)[]"])
def test_a_list_that_is_declared_as_of_another_type_ends_the_run(type: str) -> None:
    text = f"""graph(%x : Tensor):{CONSTANTS}
      %l : Tensor[] = prim::ListConstruct(%x)
      %u : Any = prim::unchecked_cast(%l)
      %c : {type} = prim::unchecked_cast(%u)
      %k : int = aten::len(%c)
      return (%k)
    """
    for pipeline in ("none", "default"):
        with pytest.raises(Error, match=r"^IRC424: .*of type Tensor\[\] is declared as"):
            irc.compile(parse_module(text), pipeline).run({"x": X})


@pytest.mark.parametrize("given", [[], [X]], ids=["empty", "tensors"])
@pytest.mark.parametrize(("first", "second"), [("Tensor[]", "Tensor?[]"), ("Tensor?[]", "Tensor[]")])
def test_a_list_that_is_given_as_any_is_of_the_first_type_that_is_declared_for_it(
    given: list[Any], first: str, second: str
) -> None:
    def text(then: str) -> str:
        return f"""graph(%x : Tensor, %u : Any):{CONSTANTS}
      %c : {first} = prim::unchecked_cast(%u)
      %a : {first} = aten::append(%c, %x)
      %v : Any = prim::unchecked_cast(%c)
      %d : {then} = prim::unchecked_cast(%v)
      %b : bool = prim::isinstance[types=[{second}]](%u)
      %k : int = aten::len(%d)
      return (%k, %b)
    """

    feeds = {"x": X, "u": given}
    assert [[*found.values()] for found in results(text(first), feeds)] == [[len(given) + 1, False]] * 2
    for pipeline in ("none", "default"):
        with pytest.raises(Error, match=r"^IRC424: .*is declared as"):
            irc.compile(parse_module(text(second)), pipeline).run(feeds)


REFUSED = [
    "%r : Tensor?[] = prim::If(%c)\n    block0():\n      -> (%l)\n    block1():\n      -> (%m)",
    "%r : Tensor[][] = prim::ListConstruct(%l, %m)",
    "%r : (Tensor[], int) = prim::TupleConstruct(%m, %o)",
    "%r : Dict(str, Tensor?[]) = prim::DictConstruct(%s, %l)",
    "%r : Tensor?[] = prim::Loop(%o, %c, %l)\n    block0(%i : int, %p : Tensor?[]):\n      -> (%c, %p)",
    "%r : Tensor?[] = aten::append(%l, %x)",
    "%r : Tensor?[] = aten::split(%x, %o, %z)",
]


@pytest.mark.parametrize("line", REFUSED)
def test_the_verifier_refuses_to_hand_a_list_on_as_one_of_another_type(line: str) -> None:
    head = f"graph(%x : Tensor, %l : Tensor[], %m : Tensor?[], %c : bool):{CONSTANTS}  "
    graph = parse_graph(f"{head}{line}\n  return (%r)\n")
    with pytest.raises(Error, match=r"^IRC214: "):
        graph.verify()
