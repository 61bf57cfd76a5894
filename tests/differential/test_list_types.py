"""Which types lists and dictionaries are of: what ``isinstance`` says in PyTorch and in irc."""

from typing import Any

import numpy as np
import pytest

import irc
from irc.ir import parse_module

torch: Any = pytest.importorskip("torch")

X = np.ones(2, np.float32)

ASKED = (
    *("Tensor[]", "Tensor?[]", "Tensor[][]", "Tensor?[][]", "int[]", "int?[]", "float[]", "Any[]", "str[]"),
    *("Union(int, Tensor)[]", "Dict(str, Tensor)", "Dict(str, Tensor?)", "Dict(str, Tensor[])", "Dict(str, Tensor?[])"),
    *("Tensor", "int"),
)
"""PyTorch's parser takes no tuple here."""

MADE = {
    "tensors": "%v : Tensor[] = prim::ListConstruct(%x, %x)",
    "optional tensors": "%v : Tensor?[] = prim::ListConstruct(%x, %n)",
    "optional tensors, all there": "%v : Tensor?[] = prim::ListConstruct(%x, %x)",
    "only None": "%v : Tensor?[] = prim::ListConstruct(%n)",
    "no tensors": "%v : Tensor[] = prim::ListConstruct()",
    "no optional tensors": "%v : Tensor?[] = prim::ListConstruct()",
    "no ints": "%v : int[] = prim::ListConstruct()",
    "no optional ints": "%v : int?[] = prim::ListConstruct()",
    "ints": "%v : int[] = prim::ListConstruct(%o)",
    "optional ints": "%v : int?[] = prim::ListConstruct(%o, %o)",
    "anything": "%v : Any[] = prim::ListConstruct(%x, %x)",
    "union": "%v : Union(Tensor, int)[] = prim::ListConstruct(%x)",
    "no lists": "%v : Tensor[][] = prim::ListConstruct()",
    "lists": "%l : Tensor[] = prim::ListConstruct()\n  %v : Tensor[][] = prim::ListConstruct(%l)",
    "lists of optionals": "%l : Tensor?[] = prim::ListConstruct(%x)\n  %v : Tensor?[][] = prim::ListConstruct(%l)",
    "an element": "%l : Tensor?[] = prim::ListConstruct(%x)\n  %k : Tensor?[][] = prim::ListConstruct(%l)\n"
    "  %v : Tensor?[] = aten::__getitem__(%k, %z)",
    "a slice": "%l : Tensor?[] = prim::ListConstruct(%x, %n)\n  %v : Tensor?[] = aten::slice(%l, %z, %o, %o)",
    "a sum": "%l : Tensor?[] = prim::ListConstruct(%x)\n  %v : Tensor?[] = aten::add(%l, %l)",
    "a product": "%l : Tensor?[] = prim::ListConstruct(%x)\n  %v : Tensor?[] = aten::mul(%l, %o)",
    "a copy": "%l : Tensor?[] = prim::ListConstruct(%x)\n  %v : Tensor?[] = aten::copy(%l)",
    "a list of a list": "%l : Tensor?[] = prim::ListConstruct(%x)\n  %v : Tensor?[] = aten::list(%l)",
    "emptied": "%v : Tensor?[] = prim::ListConstruct(%x)\n  %p : Tensor? = aten::pop(%v, %z)",
    "appended to": "%v : Tensor?[] = prim::ListConstruct()\n  %p : Tensor?[] = aten::append(%v, %x)",
    "parts of a tensor": "%v : Tensor[] = aten::split(%x, %o, %z)",
    "tuples": "%t : (Tensor, int) = prim::TupleConstruct(%x, %o)\n  %v : (Tensor, int)[] = prim::ListConstruct(%t)",
    "optional tuples": "%t : (Tensor?, int) = prim::TupleConstruct(%x, %o)\n"
    "  %v : (Tensor?, int)[] = prim::ListConstruct(%t)",
    "a dictionary": "%v : Dict(str, Tensor) = prim::DictConstruct(%s, %x)",
    "a dictionary of optionals": "%v : Dict(str, Tensor?) = prim::DictConstruct(%s, %x)",
    "an empty dictionary": "%v : Dict(str, Tensor?) = prim::DictConstruct()",
    "a dictionary of lists": "%l : Tensor?[] = prim::ListConstruct(%x)\n"
    "  %v : Dict(str, Tensor?[]) = prim::DictConstruct(%s, %l)",
    "its values": "%d : Dict(str, Tensor?) = prim::DictConstruct(%s, %x)\n  %v : Tensor?[] = aten::values(%d)",
    "its keys": "%d : Dict(str, Tensor?) = prim::DictConstruct()\n  %v : str[] = aten::keys(%d)",
    "a copied dictionary": "%d : Dict(str, Tensor?) = prim::DictConstruct(%s, %x)\n"
    "  %v : Dict(str, Tensor?) = aten::copy(%d)",
    "in a tuple": "%l : Tensor?[] = prim::ListConstruct(%x)\n  %v : (Tensor?[], int) = prim::TupleConstruct(%l, %o)",
    "in another tuple": "%l : Tensor[] = prim::ListConstruct()\n  %v : (Tensor[], int) = prim::TupleConstruct(%l, %o)",
}

CONSTANTS = """
  %n : NoneType = prim::Constant()
  %z : int = prim::Constant[value=0]()
  %o : int = prim::Constant[value=1]()
  %s : str = prim::Constant[value="k"]()
"""


def questions(of: str) -> str:
    lines = [f"  %b{i} : bool = prim::isinstance[types=[{type}]]({of})\n" for i, type in enumerate(ASKED)]
    names = ", ".join(f"%b{i}" for i in range(len(ASKED)))
    return "".join(lines) + f"  %r : ({', '.join(['bool'] * len(ASKED))}) = prim::TupleConstruct({names})\n"


def by_irc(text: str, *inputs: Any) -> set[tuple[bool, ...]]:
    """What it says without passes, and by default, compiled and loaded."""
    found = set[tuple[bool, ...]]()
    for pipeline in ("none", "default"):
        model = irc.compile(parse_module(text), pipeline)
        found.add(tuple(model.run(dict(zip(("x", "u"), inputs)))["r"]))
    return found


def by_torch(text: str, *inputs: Any) -> tuple[bool, ...]:
    graph = torch._C.parse_ir(text)
    return tuple(torch._C._create_function_from_graph("forward", graph)(*inputs))


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("through", ["itself", "Any", "an element of Any[]", "a branch"])
def test_a_list_is_of_one_type(made: str, through: str) -> None:
    lines = f"  {MADE[made]}\n"
    if through == "an element of Any[]":
        lines += "  %a : Any[] = prim::ListConstruct(%v, %x)\n  %w : Any = aten::__getitem__(%a, %z)\n"
    elif through == "a branch":
        lines += (
            "  %c : bool = aten::Bool(%o)\n  %w : Any = prim::If(%c)\n    block0():\n      -> (%v)\n"
            "    block1():\n      -> (%x)\n"
        )
    elif through == "Any":
        lines += "  %w : Any = prim::unchecked_cast(%v)\n"
    of = "%v" if through == "itself" else "%w"
    text = f"graph(%x : Tensor):{CONSTANTS}{lines}{questions(of)}  return (%r)\n"
    assert by_irc(text, X) == {by_torch(text, torch.from_numpy(X))}


GIVEN: list[Any] = [
    [X],
    [X, None],
    [None, X],
    [None],
    [1],
    [[X]],
    [[X], [X, X]],
    [[X, None]],
    (X,),
    ([X], 1),
    ([X, None], 1),
    [(X, 1)],
    {"a": X},
    {"a": [X]},
    {"a": [X, None]},
    X,
    3,
]


def to_torch(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    if isinstance(value, dict):
        return {k: to_torch(v) for k, v in value.items()}
    return value.__class__(map(to_torch, value)) if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_what_a_caller_gives_for_anything_has_the_type_of_what_it_holds(given: Any) -> None:
    text = f"graph(%x : Tensor, %u : Any):\n{questions('%u')}  return (%r)\n"
    assert by_irc(text, X, given) == {by_torch(text, torch.from_numpy(X), to_torch(given))}


@pytest.mark.parametrize("type", ["Tensor[]", "Tensor?[]", "int[]", "int?[]", "Tensor?[][]", "Dict(str, Tensor?)"])
def test_what_a_caller_gives_has_the_declared_type(type: str) -> None:
    given: Any = {} if type.startswith("Dict") else []
    text = f"graph(%x : Tensor, %u : {type}):\n{questions('%u')}  return (%r)\n"
    (found,) = by_irc(text, X, given)
    assert found == tuple(asked == type for asked in ASKED)
