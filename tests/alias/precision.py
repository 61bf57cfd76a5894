"""Programs whose containers allocation sites tell apart, and wildcards, one for each type, do not.

``%a``, ``%b`` and ``%d`` are fresh tensors, ``%z`` and ``%o`` the numbers 0
and 1, ``%k`` and ``%q`` strings, ``%t`` is true; ``%n`` is any number, ``%c`` any truth.
"""

from typing import NamedTuple

_BEGIN = """\
graph(%x : Tensor, %n : int, %c : bool):
  %z : int = prim::Constant[value=0]()
  %o : int = prim::Constant[value=1]()
  %k : str = prim::Constant[value="k"]()
  %q : str = prim::Constant[value="q"]()
  %t : bool = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::sigmoid(%x)
  %d : Tensor = aten::neg(%x)
"""


class Program(NamedTuple):
    """A program and what is so of it.

    Attributes:
        body: its nodes.
        apart: pairs, ``"e f"``, that share nothing and hold nothing in common.
        together: pairs that do.
        unwritten: values that nothing writes, nor what they hold.
    """

    body: str
    apart: tuple[str, ...]
    together: tuple[str, ...]
    unwritten: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The graph; it returns nothing of interest."""
        lines = "".join(f"  {line}\n" for line in self.body.strip().splitlines())
        return f"{_BEGIN}{lines}  return (%z)\n"


_TWO_LISTS = """\
%l : Tensor[] = prim::ListConstruct(%a)
%m : Tensor[] = prim::ListConstruct(%b)
"""
_TWO_DICTS = """\
%l : Dict(str, Tensor) = prim::DictConstruct(%k, %a)
%m : Dict(str, Tensor) = prim::DictConstruct(%k, %b)
"""
_E_AND_F = """\
%e : Tensor = aten::__getitem__(%l, %z)
%f : Tensor = aten::__getitem__(%m, %z)
"""
_APART, _TOGETHER = ("e f", "e b", "f a", "l m"), ("e a", "f b", "l a")


def _parts(kind: str, arguments: str) -> Program:
    body = f"""\
%l : Tensor[] = aten::{kind}(%a{arguments})
%m : Tensor[] = aten::{kind}(%b{arguments})
{_E_AND_F}"""
    return Program(body, _APART, _TOGETHER)


def _of_lists(kind: str) -> Program:
    body = f"""\
%p : Tensor[] = prim::ListConstruct(%a, %a)
%r : Tensor[] = prim::ListConstruct(%b, %b)
%l : Tensor[] = aten::{kind}(%p)
%m : Tensor[] = aten::{kind}(%r)
{_E_AND_F}"""
    return Program(body, (*_APART, "p r", "p m"), (*_TOGETHER, "p l"))


PROGRAMS: dict[str, Program] = {
    # -- lists -----------------------------------------------------------
    "two lists": Program(_TWO_LISTS + _E_AND_F, _APART, _TOGETHER),
    "a write through an element": Program(
        _TWO_LISTS + _E_AND_F + "%w : Tensor = aten::relu_(%e)", _APART, _TOGETHER, ("b", "m", "f")
    ),
    "append": Program(
        _TWO_LISTS + "%s : Tensor[] = aten::append(%l, %d)\n" + _E_AND_F, (*_APART, "f d", "m d"), ("e d", "e a", "s d")
    ),
    "insert": Program(_TWO_LISTS + "aten::insert(%l, %z, %d)\n" + _E_AND_F, (*_APART, "f d", "m d"), ("e d", "e a")),
    "an element replaced": Program(
        _TWO_LISTS + "%s : Tensor[] = aten::_set_item(%l, %z, %d)\n" + _E_AND_F, (*_APART, "f d"), ("e d", "e a")
    ),
    "extend": Program(_TWO_LISTS + "aten::extend(%l, %m)\n" + _E_AND_F, ("f a", "m a", "m d"), ("e a", "e b", "e f")),
    "pop": Program(
        _TWO_LISTS + "%e : Tensor = aten::pop(%l, %z)\n%f : Tensor = aten::pop(%m, %z)", _APART, ("e a", "f b")
    ),
    "list +": Program(
        _TWO_LISTS
        + """\
%s : Tensor[] = aten::add(%l, %m)
%u : Tensor[] = prim::ListConstruct(%d)
%e : Tensor = aten::__getitem__(%s, %z)
%f : Tensor = aten::__getitem__(%u, %z)""",
        ("e f", "s u", "s d", "l m"),
        ("e a", "e b", "s l", "s m"),
    ),
    "list *": Program(
        _TWO_LISTS
        + "%s : Tensor[] = aten::mul(%l, %n)\n%e : Tensor = aten::__getitem__(%s, %o)\n%f : Tensor = aten::pop(%m, %z)",
        ("e f", "s m", "s b"),
        ("e a", "s l"),
    ),
    "a slice of a list": Program(
        _TWO_LISTS
        + """\
%s : Tensor[] = aten::slice(%l, %z, %o, %o)
%e : Tensor = aten::__getitem__(%s, %z)
%f : Tensor = aten::__getitem__(%m, %z)""",
        ("e f", "s m", "s b"),
        ("e a", "s l"),
    ),
    "copies of lists": _of_lists("copy"),
    "lists made from lists": _of_lists("list"),
    "broadcast_tensors": _of_lists("broadcast_tensors"),
    "atleast_1d": _of_lists("atleast_1d"),
    "meshgrid": _of_lists("meshgrid"),
    "lists turned round": Program(_TWO_LISTS + "aten::reverse(%l)\n" + _E_AND_F, _APART, _TOGETHER),
    "lists unpacked": Program(
        _TWO_LISTS + "%e : Tensor = prim::ListUnpack(%l)\n%f : Tensor = prim::ListUnpack(%m)", _APART, _TOGETHER
    ),
    "one tensor in two lists, another in a third": Program(
        """\
%p : Tensor[] = prim::ListConstruct(%a)
%l : Tensor[] = prim::ListConstruct(%a)
%m : Tensor[] = prim::ListConstruct(%b)
"""
        + _E_AND_F,
        (*_APART, "p m", "p b"),
        (*_TOGETHER, "p l", "p e"),
    ),
    "cat of a list that is used again": Program(
        _TWO_LISTS + "%s : Tensor = aten::cat(%l, %z)\n" + _E_AND_F + "%w : Tensor = aten::relu_(%s)",
        ("e f", "s f", "s b", "s e"),
        ("e a",),
        ("a", "l", "m"),
    ),
    # -- parts of tensors ------------------------------------------------
    "chunk": _parts("chunk", ", %o, %z"),
    "split": _parts("split", ", %o, %z"),
    "unbind": _parts("unbind", ", %z"),
    # -- lists of lists --------------------------------------------------
    "nested lists": Program(
        _TWO_LISTS
        + """\
%ll : Tensor[][] = prim::ListConstruct(%l)
%mm : Tensor[][] = prim::ListConstruct(%m)
%p : Tensor[] = aten::__getitem__(%ll, %z)
%r : Tensor[] = aten::__getitem__(%mm, %z)
%e : Tensor = aten::__getitem__(%p, %z)
%f : Tensor = aten::__getitem__(%r, %z)
%w : Tensor = aten::relu_(%e)""",
        (*_APART, "ll mm", "p r", "p m", "ll b"),
        (*_TOGETHER, "ll a", "p l"),
        ("b", "m", "mm"),
    ),
    "appending to an inner list": Program(
        _TWO_LISTS
        + """\
%ll : Tensor[][] = prim::ListConstruct(%l)
%p : Tensor[] = aten::__getitem__(%ll, %z)
%s : Tensor[] = aten::append(%p, %d)
"""
        + _E_AND_F,
        ("f d", "m d", "ll m"),
        ("e d", "l d", "ll d"),
    ),
    # -- tuples ----------------------------------------------------------
    "fields of a tuple": Program(
        "%p : (Tensor, Tensor) = prim::TupleConstruct(%a, %b)\n%e : Tensor, %f : Tensor = prim::TupleUnpack(%p)\n"
        "%w : Tensor = aten::relu_(%e)",
        ("e f", "e b", "f a"),
        ("e a", "f b", "p a", "p b"),
        ("b", "f"),
    ),
    "a field by its number": Program(
        "%p : (Tensor, Tensor) = prim::TupleConstruct(%a, %b)\n%e : Tensor = prim::TupleIndex(%p, %z)\n"
        "%f : Tensor = prim::TupleIndex(%p, %o)",
        ("e f", "e b", "f a"),
        ("e a", "f b"),
    ),
    "a tuple of lists": Program(
        _TWO_LISTS
        + """\
%p : (Tensor[], Tensor[]) = prim::TupleConstruct(%l, %m)
%r : Tensor[], %s : Tensor[] = prim::TupleUnpack(%p)
%e : Tensor = aten::__getitem__(%r, %z)
%f : Tensor = aten::__getitem__(%s, %z)""",
        (*_APART, "r s", "r b"),
        (*_TOGETHER, "r a", "p a"),
    ),
    "a tuple in a tuple": Program(
        """\
%p : (Tensor, Tensor) = prim::TupleConstruct(%a, %b)
%r : ((Tensor, Tensor), Tensor) = prim::TupleConstruct(%p, %d)
%s : (Tensor, Tensor), %g : Tensor = prim::TupleUnpack(%r)
%e : Tensor, %f : Tensor = prim::TupleUnpack(%s)""",
        ("e f", "e g", "f g", "g a", "s d"),
        ("e a", "f b", "g d", "s p"),
    ),
    "tuples in a list": Program(
        """\
%p : (Tensor, Tensor) = prim::TupleConstruct(%a, %b)
%l : (Tensor, Tensor)[] = prim::ListConstruct(%p)
%s : (Tensor, Tensor) = aten::__getitem__(%l, %z)
%e : Tensor, %f : Tensor = prim::TupleUnpack(%s)""",
        ("e f", "e b", "f a", "l d"),
        ("e a", "f b", "l a"),
    ),
    # -- dictionaries ----------------------------------------------------
    "two dictionaries": Program(
        _TWO_DICTS + "%e : Tensor = aten::__getitem__(%l, %k)\n%f : Tensor = aten::__getitem__(%m, %k)",
        _APART,
        _TOGETHER,
    ),
    "an entry made": Program(
        _TWO_DICTS
        + "aten::_set_item(%l, %q, %d)\n%e : Tensor = aten::__getitem__(%l, %q)\n"
        + "%f : Tensor = aten::__getitem__(%m, %k)",
        ("e f", "f d", "m d", "e b"),
        ("e d", "l d"),
    ),
    "values": Program(
        _TWO_DICTS
        + "%p : Tensor[] = aten::values(%l)\n%r : Tensor[] = aten::values(%m)\n"
        + "%e : Tensor = aten::__getitem__(%p, %z)\n%f : Tensor = aten::__getitem__(%r, %z)",
        (*_APART, "p r"),
        (*_TOGETHER, "p a"),
    ),
    "get": Program(
        _TWO_DICTS + "%e : Tensor? = aten::get(%l, %k)\n%f : Tensor? = aten::get(%m, %k)", _APART, _TOGETHER
    ),
    "setdefault": Program(
        _TWO_DICTS
        + "%e : Tensor = aten::setdefault(%l, %q, %d)\n%f : Tensor = aten::__getitem__(%m, %k)\n"
        + "%w : Tensor = aten::relu_(%f)",
        ("e f", "m d", "l b"),
        ("e d", "e a", "l d"),
        ("a", "d", "e"),
    ),
    "update": Program(
        _TWO_DICTS
        + "aten::update(%l, %m)\n%e : Tensor = aten::__getitem__(%l, %k)\n%f : Tensor = aten::__getitem__(%m, %k)",
        ("f a", "m a"),
        ("e a", "e b", "l b"),
    ),
    "copies of dictionaries": Program(
        _TWO_DICTS
        + "%p : Dict(str, Tensor) = aten::copy(%l)\n%e : Tensor = aten::__getitem__(%p, %k)\n"
        + "%f : Tensor = aten::__getitem__(%m, %k)",
        ("e f", "p m", "p b"),
        ("e a", "p l"),
    ),
    "lists in dictionaries": Program(
        _TWO_LISTS
        + """\
%p : Dict(str, Tensor[]) = prim::DictConstruct(%k, %l)
%r : Dict(str, Tensor[]) = prim::DictConstruct(%k, %m)
%s : Tensor[] = aten::__getitem__(%p, %k)
%e : Tensor = aten::__getitem__(%s, %z)
%f : Tensor = aten::__getitem__(%m, %z)""",
        ("e f", "p r", "s m", "p b"),
        ("e a", "s l", "p a"),
    ),
    # -- branches and loops ----------------------------------------------
    "a list from either branch": Program(
        """\
%l : Tensor[] = prim::If(%c)
  block0():
    %p : Tensor[] = prim::ListConstruct(%a)
    -> (%p)
  block1():
    %r : Tensor[] = prim::ListConstruct(%b)
    -> (%r)
%m : Tensor[] = prim::ListConstruct(%d)
"""
        + _E_AND_F,
        ("e f", "e d", "l m", "p r", "p b"),
        ("e a", "e b", "f d", "l p", "l r"),
    ),
    "a list that one branch appends to": Program(
        _TWO_LISTS
        + """\
prim::If(%c)
  block0():
    %s : Tensor[] = aten::append(%l, %d)
    -> ()
  block1():
    -> ()
"""
        + _E_AND_F,
        ("f d", "m d", "e f"),
        ("e d", "l d"),
    ),
    "a loop appends to one of two lists": Program(
        _TWO_LISTS
        + """\
%u : Tensor[], %v : Tensor[] = prim::Loop(%n, %t, %l, %m)
  block0(%i : int, %p : Tensor[], %r : Tensor[]):
    %s : Tensor[] = aten::append(%p, %d)
    -> (%t, %p, %r)
%e : Tensor = aten::__getitem__(%u, %z)
%f : Tensor = aten::__getitem__(%v, %z)
%w : Tensor = aten::relu_(%e)""",
        ("e f", "f d", "u v", "p r", "m d"),
        ("e d", "e a", "p u", "f b"),
        ("b", "m", "v"),
    ),
    "a loop swaps two lists of three": Program(
        _TWO_LISTS
        + """\
%g : Tensor[] = prim::ListConstruct(%d)
%u : Tensor[], %v : Tensor[], %h : Tensor[] = prim::Loop(%n, %t, %l, %m, %g)
  block0(%i : int, %p : Tensor[], %r : Tensor[], %s : Tensor[]):
    -> (%t, %r, %p, %s)
%e : Tensor = aten::__getitem__(%u, %z)
%f : Tensor = aten::__getitem__(%h, %z)""",
        ("e f", "u h", "r d", "l m", "h a"),
        ("e a", "e b", "u v", "f d"),
    ),
    "lists made on every iteration": Program(
        """\
%l : Tensor[] = prim::ListConstruct(%a)
prim::Loop(%n, %t)
  block0(%i : int):
    %m : Tensor[] = prim::ListConstruct(%b)
    %s : Tensor[] = aten::append(%m, %d)
    -> (%t)
%e : Tensor = aten::__getitem__(%l, %z)""",
        ("e b", "e d", "l m"),
        ("e a", "m d", "m b"),
    ),
}
