"""Random chains of views of one tensor, with every kind of argument, and the memory that they show.

All programs are text, drawn without regard to what their arguments mean: many views fail for many sizes, and what does
not need them counts. A program runs for several shapes and numbers, and of each run the addresses of all elements
of all tensors are compared with what the analysis denies.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import strategies as st

from irc.alias import AliasDb, analyze
from irc.ir import Graph, Value, parse_graph
from irc.ir.types import TensorType
from tests.alias.slice_programs import places
from tests.programs.interpreter import interpret_what_works

NUMBERS = (-3, -2, -1, 0, 1, 2, 3, 5)
SHAPES = ((0, 3), (1, 1), (2, 2), (3, 2), (4, 5), (5, 1, 4), (2, 3, 4), (6,), (1, 2, 1, 3))
GIVEN = ((0, 1), (1, 0), (2, 1), (-1, 2), (-2, -1), (3, -3))

HEAD = (
    "graph(%x : Tensor, %n : int, %m : int):\n  %none : NoneType = prim::Constant()\n"
    "  %false : bool = prim::Constant[value=0]()\n"
    + "".join(f"  %c{'m' * (n < 0)}{abs(n)} : int = prim::Constant[value={n}]()\n" for n in NUMBERS)
    + "".join(f"  %t{'m' * (n < 0)}{abs(n)} : Long(1) = prim::Constant[value=tensor([{n}])]()\n" for n in NUMBERS)
)

CONSTANTS = st.sampled_from([f"%c{'m' * (n < 0)}{abs(n)}" for n in NUMBERS])
TENSORS = st.sampled_from([f"%t{'m' * (n < 0)}{abs(n)}" for n in NUMBERS])


class _Text:
    """A program as it grows."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.tensors = ["%x"]
        self.numbers = ["%n", "%m"]
        self.count = 0

    def add(self, type: str, operation: str) -> str:
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} : {type} = {operation}\n")
        (self.tensors if type == "Tensor" else self.numbers if type == "int" else []).append(name)
        return name

    def one_of(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def number(self) -> str:
        return self.draw(CONSTANTS if self.draw(st.integers(0, 3)) else st.sampled_from(self.numbers))

    def dim(self) -> str:
        return self.draw(st.sampled_from(["%c0"] * 4 + ["%c1"] * 3 + ["%cm1"] * 2 + ["%cm2", "%c2", "%n"]))

    def tensor(self) -> str:
        """Mostly one of the last two: long chains, and several views of one tensor."""
        return self.draw(st.sampled_from([*self.tensors, *self.tensors[-2:] * 2]))

    def numbers_of(self, count: int) -> str:
        return self.add("int[]", f"prim::ListConstruct({', '.join(self.number() for _ in range(count))})")

    def maybe(self) -> str:
        """A bound that may be absent, or be so only for some numbers."""
        kind = self.draw(st.integers(0, 6))
        if kind < 2:
            return "%none"
        if kind > 2:
            return self.number()
        self.count += 1
        name, number = f"%v{self.count}", self.number()
        self.lines.append(
            f"  %b{self.count} : bool = aten::gt(%n, %c0)\n  {name} : int? = prim::If(%b{self.count})\n"
            f"    block0():\n      -> (%none)\n    block1():\n      -> ({number})\n"
        )
        return name


def _list(p: _Text) -> None:
    """Pieces, of which some are taken out; something may change the list."""
    x, dim = p.tensor(), p.dim()
    kind = p.one_of("unbind", "split", "split", "chunk", "tensor_split", "split_with_sizes")
    by = {"unbind": [], "chunk": [p.number()], "split_with_sizes": [p.numbers_of(2)]}.get(kind)
    if by is None:
        by = [p.number() if p.draw(st.booleans()) else p.numbers_of(2)]
    made = p.add("Tensor[]", f"aten::{kind}({', '.join([x, *by, dim])})")
    if not p.draw(st.integers(0, 4)):
        p.add("Tensor[]", p.one_of(f"aten::reverse({made})", f"aten::_set_item({made}, %c0, {p.tensor()})"))
    if not p.draw(st.integers(0, 4)):
        made = p.add("Tensor[]", f"aten::slice({made}, %c1, %none, %c1)")
    for _ in range(2):
        p.add("Tensor", f"aten::__getitem__({made}, {p.number()})")


def _number(p: _Text) -> None:
    kind = p.one_of("add", "sub", "mul", "size", "size", "dim")
    if kind == "size":
        p.add("int", f"aten::size({p.tensor()}, {p.dim()})")
    elif kind == "dim":
        p.add("int", f"aten::dim({p.tensor()})")
    else:
        p.add("int", f"aten::{kind}({p.number()}, {p.number()})")


def _list_of_numbers(p: _Text) -> None:
    """A view by a list that changes, before or after."""
    numbers = p.numbers_of(p.one_of(1, 2))
    kind = p.one_of("view", "reshape", "permute", "split", "tensor_split")
    changes = f"aten::_set_item({numbers}, %c0, {p.number()})"
    before = p.draw(st.booleans())
    if before:
        p.add("int[]", changes)
    if kind in ("split", "tensor_split"):
        made = p.add("Tensor[]", f"aten::{kind}({p.tensor()}, {numbers}, {p.dim()})")
        for at in ("%c0", "%c1"):
            p.add("Tensor", f"aten::__getitem__({made}, {at})")
    else:
        p.add("Tensor", f"aten::{kind}({p.tensor()}, {numbers})")
    if not before:
        p.add("int[]", changes)


def _strided(p: _Text) -> None:
    size, step = p.numbers_of(1), p.numbers_of(1)
    if p.draw(st.booleans()):
        p.add("Tensor", f"aten::as_strided({p.tensor()}, {size}, {step}, {p.maybe()})")
    else:
        p.add("Tensor", f"aten::empty_strided({size}, {step}, %none, %none, %none, %none)")


def _simple(p: _Text) -> None:
    kind = p.one_of(
        *"unsqueeze squeeze transpose transpose t permute flatten diagonal expand_as unfold contiguous alias".split()
    )
    x = p.tensor()
    arguments = {
        "unsqueeze": lambda: [p.dim()],
        "squeeze": lambda: [p.dim()] if p.draw(st.booleans()) else [],
        "transpose": lambda: [p.dim(), p.dim()],
        "permute": lambda: [p.numbers_of(p.one_of(1, 2, 3))],
        "flatten": lambda: [p.dim(), p.dim()],
        "diagonal": lambda: [p.number(), p.dim(), p.dim()],
        "expand_as": lambda: [p.tensor()],
        "unfold": lambda: [p.dim(), p.number(), p.number()],
        "contiguous": lambda: ["%c0"],
    }
    p.add("Tensor", f"aten::{kind}({', '.join([x, *arguments.get(kind, list)()])})")


def _part(p: _Text) -> None:
    """Two parts of one tensor, along dimensions of which mostly nothing is known but that they are the same."""
    x, dim = p.tensor(), p.dim()
    for _ in range(2):
        kind = p.one_of("select", "slice", "slice", "narrow")
        dim = dim if p.draw(st.integers(0, 3)) else p.dim()
        if kind == "select":
            p.add("Tensor", f"aten::select({x}, {dim}, {p.number()})")
        elif kind == "narrow":
            p.add("Tensor", f"aten::narrow({x}, {dim}, {p.number()}, {p.number()})")
        else:
            step = p.one_of("%c1", "%c1", "%c2", "%c3", "%n")
            p.add("Tensor", f"aten::slice({x}, {dim}, {p.maybe()}, {p.maybe()}, {step})")


def _onnx(p: _Text) -> None:
    x = p.tensor()
    if p.draw(st.booleans()):
        axis = p.one_of(0, 0, 1, -1)
        names = [f"%v{p.count + i}" for i in (1, 2)]
        p.count += 2
        p.lines.append(f"  {', '.join(f'{n} : Tensor' for n in names)} = onnx::Split[axis={axis}]({x})\n")
        p.tensors += names
        return
    for _ in range(2):
        start, end, axis, step = (p.draw(TENSORS) for _ in range(4))
        if p.draw(st.booleans()):
            axes = p.add("Long(2)", f"prim::Constant[value=tensor([{p.one_of(0, 1, -1)}, {p.one_of(0, 1, -1)}])]()")
            low = p.add("Long(2)", f"prim::Constant[value=tensor([{p.one_of(0, 1)}, {p.one_of(0, 2)}])]()")
            high = p.add("Long(2)", f"prim::Constant[value=tensor([{p.one_of(1, 9)}, {p.one_of(-1, 2)}])]()")
            p.add("Tensor", f"onnx::Slice({x}, {low}, {high}, {axes})")
        else:
            more = p.one_of("", f", {axis}", f", {axis}, {step}")
            p.add("Tensor", f"onnx::Slice({x}, {start}, {end}{more})")


STEPS = (_part, _part, _part, _list, _number, _list_of_numbers, _simple, _simple, _strided, _onnx)


@st.composite
def view_programs(draw: st.DrawFn) -> Graph:
    """A graph of a tensor and two integers that takes views of the tensor."""
    p = _Text(draw)
    for _ in range(draw(st.integers(2, 7))):
        draw(st.sampled_from(STEPS))(p)
    return parse_graph(f"{HEAD}{''.join(p.lines)}  return (%x)\n")


def denied(graph: Graph, db: AliasDb) -> list[tuple[Value, Value]]:
    """The pairs of tensors in the top block that show parts of one storage which are denied to overlap."""
    values = [v for node in graph.nodes for v in node.outputs if isinstance(v.type, TensorType)]
    pairs = combinations(values, 2)
    return [(a, b) for a, b in pairs if not db.may_alias(a, b) and db.why_not(a, b).startswith("they lie")]


def check(graph: Graph) -> int:
    """AssertionError if two tensors share an element although it is denied; how often that could have been seen."""
    db = analyze(graph)
    pairs = denied(graph, db)
    seen = 0
    for shape in SHAPES if pairs else ():
        for n, m in GIVEN:
            env = interpret_what_works(graph, [np.zeros(shape, np.float32), n, m])
            shown = {v: frozenset(places(x)) for v, x in env.items() if isinstance(x, np.ndarray)}
            for a, b in pairs:
                if shown.get(a) and shown.get(b):
                    seen += 1
                    where = f"for {shape}, {n}, {m}: {db.why_not(a, b)}\n{graph}"
                    assert shown[a].isdisjoint(shown[b]), f"%{a.name} and %{b.name} overlap {where}"
    return seen
