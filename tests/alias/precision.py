"""Programs whose containers allocation sites tell apart, and wildcards, one for each type, do not."""

import re
from typing import NamedTuple

from tests.graphs import ir

BEGIN = """
z: int = prim.Constant(value=0)
o: int = prim.Constant(value=1)
k: str = prim.Constant(value="k")
q: str = prim.Constant(value="q")
t: bool = prim.Constant(value=1)
a = relu(x)
b = sigmoid(x)
d = neg(x)
"""
"""Three fresh tensors, numbers, words and a truth; ``n`` is any number, ``c`` any truth."""

SHORT = {
    "LISTS": 'l: "Tensor[]" = prim.ListConstruct(a)\nm: "Tensor[]" = prim.ListConstruct(b)',
    "DICTS": 'l: "Dict(str, Tensor)" = prim.DictConstruct(k, a)\nm: "Dict(str, Tensor)" = prim.DictConstruct(k, b)',
    "E_F": "e = __getitem__(l, z)\nf = __getitem__(m, z)",
    "APART": "e f, e b, f a, l m",
    "TOGETHER": "e a, f b, l a",
}
"""What many programs have in common."""

TABLE = """
== two lists | APART | TOGETHER
LISTS; E_F
== a write through an element | APART | TOGETHER | b, m, f
LISTS; E_F; w = relu_(e)
== append | APART, f d, m d | e d, e a, s d
LISTS; s: "Tensor[]" = append(l, d); E_F
== insert | APART, f d, m d | e d, e a
LISTS; insert(l, z, d); E_F
== an element replaced | APART, f d | e d, e a
LISTS; s: "Tensor[]" = _set_item(l, z, d); E_F
== extend | f a, m a, m d | e a, e b, e f
LISTS; extend(l, m); E_F
== pop | APART | e a, f b
LISTS; e = aten.pop(l, z); f = aten.pop(m, z)
== list + | e f, s u, s d, l m | e a, e b, s l, s m
LISTS; s: "Tensor[]" = add(l, m); u: "Tensor[]" = prim.ListConstruct(d); e = __getitem__(s, z); f = __getitem__(u, z)
== list * | e f, s m, s b | e a, s l
LISTS; s: "Tensor[]" = mul(l, n); e = __getitem__(s, o); f = aten.pop(m, z)
== a slice of a list | e f, s m, s b | e a, s l
LISTS; s: "Tensor[]" = slice(l, z, o, o); e = __getitem__(s, z); f = __getitem__(m, z)
== lists turned round | APART | TOGETHER
LISTS; reverse(l); E_F
== lists unpacked | APART | TOGETHER
LISTS; e = prim.ListUnpack(l); f = prim.ListUnpack(m)
== one tensor in two lists, another in a third | APART, p m, p b | TOGETHER, p l, p e
p: "Tensor[]" = prim.ListConstruct(a); LISTS; E_F
== cat of a list that is used again | e f, s f, s b, s e | e a | a, l, m
LISTS; s = cat(l, z); E_F; w = relu_(s)
== chunk | APART | TOGETHER
l = chunk(a, o, z); m = chunk(b, o, z); E_F
== split | APART | TOGETHER
l = split(a, o, z); m = split(b, o, z); E_F
== unbind | APART | TOGETHER
l = unbind(a, z); m = unbind(b, z); E_F
== nested lists | APART, ll mm, p r, p m, ll b | TOGETHER, ll a, p l | b, m, mm
LISTS; ll: "Tensor[][]" = prim.ListConstruct(l); mm: "Tensor[][]" = prim.ListConstruct(m)
p: "Tensor[]" = __getitem__(ll, z); r: "Tensor[]" = __getitem__(mm, z)
e = __getitem__(p, z); f = __getitem__(r, z); w = relu_(e)
== appending to an inner list | f d, m d, ll m | e d, l d, ll d
LISTS; ll: "Tensor[][]" = prim.ListConstruct(l); p: "Tensor[]" = __getitem__(ll, z)
s: "Tensor[]" = append(p, d); E_F
== fields of a tuple | e f, e b, f a | e a, f b, p a, p b | b, f
p: "(Tensor, Tensor)" = prim.TupleConstruct(a, b); e[Tensor], f[Tensor] = prim.TupleUnpack(p); w = relu_(e)
== a field by its number | e f, e b, f a | e a, f b
p: "(Tensor, Tensor)" = prim.TupleConstruct(a, b); e = prim.TupleIndex(p, z); f = prim.TupleIndex(p, o)
== a tuple of lists | APART, r s, r b | TOGETHER, r a, p a
LISTS; p: "(Tensor[], Tensor[])" = prim.TupleConstruct(l, m); r["Tensor[]"], s["Tensor[]"] = prim.TupleUnpack(p)
e = __getitem__(r, z); f = __getitem__(s, z)
== a tuple in a tuple | e f, e g, f g, g a, s d | e a, f b, g d, s p
p: "(Tensor, Tensor)" = prim.TupleConstruct(a, b); r: "((Tensor, Tensor), Tensor)" = prim.TupleConstruct(p, d)
s["(Tensor, Tensor)"], g[Tensor] = prim.TupleUnpack(r); e[Tensor], f[Tensor] = prim.TupleUnpack(s)
== tuples in a list | e f, e b, f a, l d | e a, f b, l a
p: "(Tensor, Tensor)" = prim.TupleConstruct(a, b); l: "(Tensor, Tensor)[]" = prim.ListConstruct(p)
s: "(Tensor, Tensor)" = __getitem__(l, z); e[Tensor], f[Tensor] = prim.TupleUnpack(s)
== two dictionaries | APART | TOGETHER
DICTS; e = __getitem__(l, k); f = __getitem__(m, k)
== an entry made | e f, f d, m d, e b | e d, l d
DICTS; _set_item(l, q, d); e = __getitem__(l, q); f = __getitem__(m, k)
== values | APART, p r | TOGETHER, p a
DICTS; p: "Tensor[]" = values(l); r: "Tensor[]" = values(m); e = __getitem__(p, z); f = __getitem__(r, z)
== get | APART | TOGETHER
DICTS; e: "Tensor?" = get(l, k); f: "Tensor?" = get(m, k)
== setdefault | e f, m d, l b | e d, e a, l d | a, d, e
DICTS; e = setdefault(l, q, d); f = __getitem__(m, k); w = relu_(f)
== update | f a, m a | e a, e b, l b
DICTS; update(l, m); e = __getitem__(l, k); f = __getitem__(m, k)
== copies of dictionaries | e f, p m, p b | e a, p l
DICTS; p: "Dict(str, Tensor)" = aten.copy(l); e = __getitem__(p, k); f = __getitem__(m, k)
== lists in dictionaries | e f, p r, s m, p b | e a, s l, p a
LISTS; p: "Dict(str, Tensor[])" = prim.DictConstruct(k, l); r: "Dict(str, Tensor[])" = prim.DictConstruct(k, m)
s: "Tensor[]" = __getitem__(p, k); e = __getitem__(s, z); f = __getitem__(m, z)
== a list from either branch | e f, e d, l m, p r, p b | e a, e b, f d, l p, l r
l: "Tensor[]" = prim.If(c)
with block(): p: "Tensor[]" = prim.ListConstruct(a); yield p
with block(): r: "Tensor[]" = prim.ListConstruct(b); yield r
m: "Tensor[]" = prim.ListConstruct(d); E_F
== a list that one branch appends to | f d, m d, e f | e d, l d
LISTS; prim.If(c)
with block(): s: "Tensor[]" = append(l, d); yield
with block(): yield
E_F
== a loop appends to one of two lists | e f, f d, u v, p r, m d | e d, e a, p u, f b | b, m, v
LISTS; u["Tensor[]"], v["Tensor[]"] = prim.Loop(n, t, l, m)
with block(i=int, p="Tensor[]", r="Tensor[]"): s: "Tensor[]" = append(p, d); yield t, p, r
e = __getitem__(u, z); f = __getitem__(v, z); w = relu_(e)
== a loop swaps two lists of three | e f, u h, r d, l m, h a | e a, e b, u v, f d
LISTS; g: "Tensor[]" = prim.ListConstruct(d); u["Tensor[]"], v["Tensor[]"], h["Tensor[]"] = prim.Loop(n, t, l, m, g)
with block(i=int, p="Tensor[]", r="Tensor[]", s="Tensor[]"): yield t, r, p, s
e = __getitem__(u, z); f = __getitem__(h, z)
== lists made on every iteration | e b, e d, l m | e a, m d, m b
l: "Tensor[]" = prim.ListConstruct(a); prim.Loop(n, t)
with block(i=int): m: "Tensor[]" = prim.ListConstruct(b); s: "Tensor[]" = append(m, d); yield t
e = __getitem__(l, z)
"""
"""Programs after their names, the pairs that share nothing and hold nothing in common, those that do, and unwritten."""


class Program(NamedTuple):
    """The text of a graph; pairs that are ``apart`` or ``together``; what nothing writes, nor what it holds."""

    text: str
    apart: tuple[str, ...]
    together: tuple[str, ...]
    unwritten: tuple[str, ...] = ()


def _programs(table: str) -> dict[str, Program]:
    made = dict[str, Program]()
    full = re.sub("|".join(rf"\b{word}\b" for word in SHORT), lambda found: SHORT[found[0]], table)
    for section in full.split("\n== ")[1:]:
        head, body = section.split("\n", 1)
        name, *groups = head.split(" | ")
        made[name] = Program(
            ir("x: Tensor; n: int; c: bool", BEGIN + body, "z"), *(tuple(each.split(", ")) for each in groups)
        )
    return made


_OF_LISTS = """
== copies by {0} | APART, p r, p m | TOGETHER, p l
p: "Tensor[]" = prim.ListConstruct(a, a); r: "Tensor[]" = prim.ListConstruct(b, b)
l: "Tensor[]" = aten.{0}(p); m: "Tensor[]" = aten.{0}(r); E_F
"""

PROGRAMS = _programs(
    TABLE + "".join(map(_OF_LISTS.format, ["copy", "list", "broadcast_tensors", "atleast_1d", "meshgrid"]))
)
