"""Random programs of views of tensors, written and read, and the memory that they really use.

Programs are text, drawn without regard to what arguments mean: many nodes fail for many shapes, and what does not need
their results goes on. Sizes and numbers are small, so that views of one tensor often meet. `Trace` compares what runs
with the answers of the analysis, by the addresses of all elements.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from irc.alias import AliasDb, analyze
from irc.alias.overwrites import dead_stores
from irc.ir import Block, Graph, Module, Node, TensorType, Value, parse_module
from tests.programs.interpreter import Env, Interpreter, Observer, arrays

NUMBERS = (-3, -2, -1, 0, 1, 2, 3, 4)
USUAL = (-2, -1, -1, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4)
READING = ("aten::exp", "aten::as_strided_copy")
WRITING = ("aten::neg_", "aten::zero_", "aten::fill_", "aten::copy_")
SHAPES = ((3, 2), (4, 4), (2, 3, 2), (1, 2, 3), (6,), (2, 2), (1, 1), (0, 3), (2,), (5, 3), (4, 2, 3), (3, 3), (6, 4))
GIVEN = ((1, 2), (0, 3), (-1, 1), (2, 0), (-2, -1), (3, -3))
LARGEST = ((1, 3), (2, 2), (5, 4), (2**63 - 1, 1), (1, 2**63 - 1), (-(2**63), 2))
RUNS = 6


def named(n: int) -> str:
    return f"%c{'m' * (n < 0)}{abs(n)}"


CONSTANTS = "  %none : NoneType = prim::Constant()\n  %true : bool = prim::Constant[value=1]()\n" + "".join(
    f"  {named(n)} : int = prim::Constant[value={n}]()\n"
    f"  {named(n).replace('c', 't')} : Long(1) = prim::Constant[value=tensor([{n}])]()\n"
    for n in NUMBERS
)
HEAD = f"(%x : Tensor, %n : int, %m : int):\n{CONSTANTS}"


class Maker:
    """A program as it grows."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines: list[str] = []
        self.indent = "  "
        self.tensors = ["%x"]
        self.numbers = ["%n", "%m"]
        self.count = 0
        self.calls = False

    def one_of(self, *options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, of: int) -> bool:
        return not self.random.randrange(of)

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def line(self, text: str) -> None:
        self.lines.append(f"{self.indent}{text}\n")

    def add(self, type: str, operation: str) -> str:
        name = self.name()
        self.line(f"{name} : {type} = {operation}")
        (self.tensors if type == "Tensor" else self.numbers if type == "int" else []).append(name)
        return name

    def number(self) -> str:
        return self.one_of(*self.numbers) if self.chance(4) else named(self.one_of(*USUAL))

    def dim(self) -> str:
        return self.one_of(*["%c0"] * 8, *["%c1", "%cm1"] * 4, "%cm2", "%cm2", "%c2", "%n")

    def tensor(self) -> str:
        return self.one_of(*self.tensors, *self.tensors[-3:] * 2)

    def numbers_of(self, count: int, *options: str) -> str:
        items = [self.one_of(*options) if options else self.number() for _ in range(count)]
        return self.add("int[]", f"prim::ListConstruct({', '.join(items)})")

    def bound(self) -> str:
        """A bound that may be absent, or be so only for some numbers."""
        kind = self.random.randrange(12)
        if kind < 4:
            return "%none"
        if kind < 11 or self.chance(2):
            return self.number()
        name, number, is_more = self.name(), self.number(), self.add("bool", "aten::gt(%n, %c0)")
        self.line(f"{name} : int? = prim::If({is_more})")
        for block, returned in (("block0", "%none"), ("block1", number)):
            self.line(f"  {block}():")
            self.line(f"    -> ({returned})")
        return name


def _parts(p: Maker) -> None:
    """Parts of one tensor and of one another, mostly along one dimension."""
    x, dim = p.one_of(p.tensors[0], p.tensor()), p.dim()
    made = [x]
    if p.chance(3):
        low, high = p.bound(), p.number()  # what is before a place, and what is from it on
        made.append(p.add("Tensor", f"aten::slice({x}, {dim}, {low}, {high}, %c1)"))
        made.append(p.add("Tensor", f"aten::slice({x}, {dim}, {high}, %none, %c1)"))
    if p.chance(3):
        made.append(p.add("Tensor", f"aten::slice({x}, {dim}, {p.one_of('%none', '%c1', p.bound())}, %none, %c2)"))
        p.add("Tensor", f"aten::select({made[-1]}, {dim}, {p.number()})")
    for _ in range(p.one_of(2, 3, 4)):
        made.append(_part(p, p.one_of(x, *made), dim if p.random.randrange(6) else p.dim()))


def _part(p: Maker, x: str, dim: str) -> str:
    kind = p.one_of(
        *["select", "slice"] * 2, "slice", "narrow", "onnx", "pieces", "alias", "unsqueeze", "order", "places"
    )
    if kind == "select":
        return p.add("Tensor", f"aten::select({x}, {dim}, {p.number()})")
    if kind == "narrow":
        return p.add("Tensor", f"aten::narrow({x}, {dim}, {p.number()}, {p.one_of('%c1', '%c1', '%c2', p.number())})")
    if kind == "slice":
        step = p.one_of(*["%c1", "%c1", "%c2"] * 4, "%c3", "%n")
        return p.add("Tensor", f"aten::slice({x}, {dim}, {p.bound()}, {p.bound()}, {step})")
    if kind == "alias":
        return p.add("Tensor", p.one_of(f"aten::alias({x})", f"aten::detach({x})", f"aten::contiguous({x}, %c0)"))
    if kind == "unsqueeze":
        return p.add("Tensor", f"aten::unsqueeze({x}, {dim})")
    if kind == "order":
        return _ordered(p, x, dim)
    if kind == "places":
        return _placed(p, x, dim)
    return _pieces(p, x, dim) if kind == "pieces" else _onnx(p, x)


def _ordered(p: Maker, x: str, dim: str) -> str:
    """The dimensions in another order."""
    order = p.random.sample(range(p.one_of(2, 2, 3)), k=2)
    order = [*order, *({0, 1, 2} - {*order})] if max(order) > 1 or p.chance(3) else order
    signed = [n - len(order) * p.chance(4) for n in order]
    if p.chance(2):
        return p.add("Tensor", f"aten::transpose({x}, {dim}, {p.dim()})")
    dims = p.add("int[]", f"prim::ListConstruct({', '.join(map(named, signed))})")
    made = p.add("Tensor", f"aten::permute({x}, {dims})")
    if p.chance(6):
        p.line(f"aten::reverse({dims})")
    return made


def _placed(p: Maker, x: str, dim: str) -> str:
    """Several diagonals, or parts of the storage."""
    for _ in range(2):
        if p.chance(2):
            dims = f"{dim}, {p.dim()}" if p.chance(3) else "%c0, %c1"
            p.add("Tensor", f"aten::diagonal({x}, {p.number()}, {dims})")
        else:
            count = p.one_of(1, 1, 2)
            size, step = (p.numbers_of(count, *map(named, choice)) for choice in ((1, 2, 2, 3), (0, 1, 1, 2, 3)))
            p.add("Tensor", f"aten::as_strided({x}, {size}, {step}, {p.number()})")
    return p.tensors[-1]


def _onnx(p: Maker, x: str) -> str:
    if p.chance(3):
        names, axis = [p.name(), p.name()], p.one_of(0, 0, 1, -1)
        sizes = p.add("Long(2)", f"prim::Constant[value=tensor([{p.one_of(0, 1, 2)}, {p.one_of(1, 2, -1)}])]()")
        kind = f"onnx::Split[axis={axis}]({x}, {sizes})" if p.chance(2) else f"onnx::Split[axis={axis}]({x})"
        p.line(f"{', '.join(f'{n} : Tensor' for n in names)} = {kind}")
        p.tensors += names
        return names[0]
    if p.chance(2):
        low, high, axes = (
            p.add("Long(2)", f"prim::Constant[value=tensor([{p.one_of(*choice)}, {p.one_of(*choice)}])]()")
            for choice in ((0, 1, -1, -2), (1, 9, -1, 2), (0, 1, -1))
        )
        return p.add("Tensor", f"onnx::Slice({x}, {low}, {high}, {axes})")
    start, end, axis, step = (named(p.one_of(*USUAL)).replace("c", "t") for _ in range(4))
    return p.add("Tensor", f"onnx::Slice({x}, {start}, {end}{p.one_of('', f', {axis}', f', {axis}, {step}')})")


def _pieces(p: Maker, x: str, dim: str) -> str:
    """Pieces, of which some are taken out; something may change the list, before or after."""
    kind = p.one_of("unbind", "split", "split", "chunk", "tensor_split", "split_with_sizes")
    lengths = None
    by = {"unbind": [], "chunk": [named(p.one_of(1, 2, 3))]}.get(kind)
    if by is None:
        lengths = p.numbers_of(p.one_of(2, 3), *map(named, (0, 1, 1, 2, -1, 3)))
        by = [p.number() if kind != "split_with_sizes" and p.chance(2) else lengths]
    changes = f"aten::_set_item({lengths}, %c0, %c1)" if lengths and p.chance(3) else ""
    if changes and p.chance(2):
        p.add("int[]", changes)
        changes = ""
    made = p.add("Tensor[]", f"aten::{kind}({', '.join([x, *by, dim])})")
    if p.chance(5):
        change = f"Tensor[] = aten::_set_item({made}, %c0, {p.tensor()})"
        p.line(p.one_of(f"aten::reverse({made})", f"{p.name()} : {change}"))
    if p.chance(6):
        made = p.add("Tensor[]", f"aten::slice({made}, %c1, %none, %c1)")
    for _ in range(2):
        p.add("Tensor", f"aten::__getitem__({made}, {named(p.one_of(0, 0, 1, 1, 2, -1))})")
    if changes:
        p.add("int[]", changes)
    return p.tensors[-1]


def _number(p: Maker) -> None:
    kind = p.one_of("add", "add", "sub", "mul", "size", "size", "dim")
    if kind == "size":
        p.add("int", f"aten::size({p.tensor()}, {p.dim()})")
    elif kind == "dim":
        p.add("int", f"aten::dim({p.tensor()})")
    else:
        p.add("int", f"aten::{kind}({p.number()}, {p.number()})")


def _other(p: Maker) -> None:
    """The same elements, or some of them, in other dimensions; and new tensors."""
    x = p.tensor()
    dims: Callable[[], str] = p.dim
    kinds: dict[str, Callable[[], Sequence[str]]] = {
        "unsqueeze": lambda: [dims()],
        "squeeze": lambda: [dims()] if p.chance(2) else [],
        "transpose": lambda: [dims(), dims()],
        "t": list,
        "permute": lambda: [p.numbers_of(p.one_of(1, 2, 3), "%c0", "%c1", "%c2", "%cm1")],
        "flatten": lambda: [dims(), dims()],
        "diagonal": lambda: [p.number(), dims(), dims()],
        "view": lambda: [p.numbers_of(p.one_of(1, 2), "%cm1", "%c1", "%c2", "%c4") if p.random.randrange(4) else "%c2"],
        "reshape": lambda: [p.numbers_of(p.one_of(1, 2), "%cm1", "%c1", "%c2", "%c4", *_sizes(p, x))],
        "expand": lambda: [p.numbers_of(p.one_of(1, 2, 3), "%cm1", "%c1", "%c2", "%c3")],
        "unfold": lambda: [dims(), named(p.one_of(1, 2)), named(p.one_of(1, 2))],
        "contiguous": lambda: ["%c0"],
        "as_strided": lambda: [p.numbers_of(1, "%c1", "%c2"), p.numbers_of(1, "%c1", "%c2"), p.bound()],
        "as_strided_copy": lambda: [p.numbers_of(1, "%c1", "%c2"), p.numbers_of(1, "%c1"), p.number()],
        "clone": list,
    }
    kind = p.one_of(*kinds, "empty_strided", "t_")
    if kind == "t_" and not p.chance(4):
        kind = "t"
    if kind == "empty_strided":
        size, step = p.numbers_of(1, "%c2", "%c3"), p.numbers_of(1, "%c0", "%c1")
        p.add("Tensor", f"aten::empty_strided({size}, {step}, %none, %none, %none, %none)")
    else:
        p.add("Tensor", f"aten::{kind}({', '.join([x, *kinds.get(kind, list)()])})")


def _sizes(p: Maker, x: str) -> list[str]:
    return [p.add("int", f"aten::size({x}, {dim})") for dim in ("%c0", "%cm1")]


def _use(p: Maker) -> None:
    """Read a tensor, write to another, and read the first again."""
    read, written = p.one_of(*p.tensors[-4:]), p.one_of(*p.tensors[-4:])
    kinds = ("exp", "exp", "exp", "as_strided_copy")
    numbers = [p.numbers_of(1, "%c2"), p.numbers_of(1, "%c1"), "%c0"] if (kind := p.one_of(*kinds)) != "exp" else []
    reading = f"aten::{kind}({', '.join([read, *numbers])})"
    p.add("Tensor", reading)
    if p.calls and p.chance(3):
        p.add("Tensor", f"prim::CallFunction(%f, {written}, {p.number()}, {p.number()})")
    else:
        p.add("Tensor", f"aten::neg_({written})")
    p.add("Tensor", reading)


def _nested(p: Maker) -> None:
    """A branch or a loop: a loop carries a tensor, which an iteration may replace by a view of it."""
    if len(p.indent) > 2 + 4 * p.chance(4):
        return
    made, given, is_loop = p.name(), p.tensor(), p.random.randrange(3)
    tensors, numbers, outer = list(p.tensors), list(p.numbers), p.indent
    if is_loop:
        count, number, carried = p.one_of("%c2", "%c3", "%c0"), p.name(), p.name()
        p.line(f"{made} : Tensor = prim::Loop({count}, %true, {given})")
        blocks = [f"  block0({number} : int, {carried} : Tensor):"]
    else:
        condition = p.add("bool", f"aten::gt({p.number()}, %c0)")
        p.line(f"{made} : Tensor = prim::If({condition})")
        blocks = ["  block0():", "  block1():"]
    for block in blocks:
        p.line(block)
        p.indent = outer + "    "
        p.tensors, p.numbers = list(tensors), list(numbers)
        if is_loop:
            p.tensors.append(carried)
            p.numbers += [number] * 4
            p.add("int", f"aten::add({number}, %c1)")
        _body(p, p.one_of(1, 2, 3), written=True)
        returned = p.one_of(given, *([carried] * 3 if is_loop else []), *p.tensors[-2:])
        p.line(f"-> ({'%true, ' * bool(is_loop)}{returned})")
        p.indent = outer
    p.tensors, p.numbers = [*tensors, made], numbers


def _body(p: Maker, count: int, written: bool) -> None:
    for _ in range(count):
        p.one_of(_parts, _parts, _parts, _number, _other, _other)(p)
        if written and p.chance(2):
            p.one_of(_use, _use, _nested)(p)


def view_program(random: Random) -> Module:
    """A module that takes views of a tensor; half of them write, too, and may have functions.

    Functions are `f`, which `main` may call, and `outer`, which calls `main`.
    """
    written = bool(random.randrange(2))
    texts: list[str] = []
    p = Maker(random)
    if written and p.chance(4):
        f = Maker(random)
        f.count = 1000
        _body(f, 2, written=True)
        texts.append(f"graph f{HEAD}{''.join(f.lines)}  return ({f.one_of(*f.tensors)})\n")
        p.calls = True
        p.line('%f : Function = prim::Constant[name="f"]()')
    if p.chance(3):
        p.tensors = [p.add("Tensor", p.one_of("aten::clone(%x)", "aten::neg(%x)"))]
    _parts(p)
    _body(p, random.randrange(1, 4), written)
    texts.insert(0, f"graph{HEAD}{''.join(p.lines)}  return (%x)\n")
    if written and p.chance(6):
        expanded = "%s : int[] = prim::ListConstruct(%c2, %cm1, %cm1)\n  %e : Tensor = aten::expand(%x, %s)"
        windows = "%e : Tensor = aten::unfold(%x, %c0, %c2, %c1)"
        call = '%g : Function = prim::Constant[name="main"]()\n  %r : Tensor = prim::CallFunction(%g, %e, %n, %m)'
        texts.append(f"graph outer{HEAD}  {p.one_of(expanded, windows)}\n  {call}\n  return (%r)\n")
    return parse_module("\n".join(texts))


def overwriting_program(random: Random) -> Module:
    """A module that writes to parts of a tensor again and again, most often to neighbours, and rarely reads."""
    p = Maker(random)
    if p.chance(2):
        p.tensors = [p.add("Tensor", "aten::clone(%x)")]
    for _ in range(p.one_of(1, 2)):
        x, dim = p.tensor(), p.dim()
        for _ in range(4):
            _part(p, x, p.dim() if p.chance(3) else dim)
        p.one_of(_number, _other, _nested, _nested)(p)
        for _ in range(8):
            _overwrite(p)
    return parse_module(f"graph{HEAD}{''.join(p.lines)}  return (%x)\n")


def guarded_program(random: Random) -> Module:
    """A module that takes and writes parts of a tensor in branches and loops, whose conditions compare their bounds."""
    p = Maker(random)
    p.numbers.append(p.add("int", "aten::add(%n, %c1)"))
    _guarded(p, 3, [p.add("int", "aten::size(%x, %c0)")])
    return parse_module(f"graph{HEAD}{''.join(p.lines)}  return (%x)\n")


def _guarded(p: Maker, depth: int, counts: list[str]) -> None:
    for _ in range(p.one_of(1, 2, 2)):
        numbers = [*p.numbers[-4:], *counts, "%n", "%m"]
        for _ in range(p.one_of(1, 2)):
            n = p.one_of(*numbers)
            made = p.one_of(
                ("Tensor", f"aten::select(%x, %c0, {n})"),
                ("Tensor", f"aten::slice(%x, %c0, {n}, %none, %c1)"),
                ("Tensor", f"aten::slice(%x, %c0, %none, {n}, %c1)"),
                ("Tensor", f"aten::narrow(%x, %c0, {n}, {p.one_of(*numbers, '%c1')})"),
                ("int", f"aten::{p.one_of('add', 'sub')}({n}, {p.one_of(*numbers, '%c1', '%c1')})"),
            )
            p.add(*made)
        if p.chance(3) and p.tensors[1:]:
            _use(p)
    if not depth:
        return
    tensors, known, outer = list(p.tensors), list(p.numbers), p.indent
    number, is_loop = p.name(), p.chance(4)
    if is_loop:
        p.line(f"prim::Loop({p.one_of('%c2', '%c3', '%m', *counts)}, %true)")
        blocks, counts = [f"  block0({number} : int):"], [*counts, number]
    else:
        p.line(f"prim::If({_condition(p, [*p.numbers[-4:], *counts, '%n', '%m'])})")
        blocks = ["  block0():", "  block1():"]
    for block in blocks:
        p.line(block)
        p.indent = outer + "    "
        p.tensors, p.numbers = list(tensors), list(known)
        _guarded(p, depth - 1, counts)
        p.line(f"-> ({p.add('bool', f'aten::lt({number}, %c2)')})" if is_loop else "-> ()")
        p.indent = outer
    p.tensors, p.numbers = tensors, known
    if p.chance(2):
        _guarded(p, 0, counts[:1])


def _condition(p: Maker, numbers: Sequence[str]) -> str:
    kind = p.random.randrange(10)
    if kind < 2:
        first, second = (_condition(p, numbers) for _ in range(2))
        constant = p.add("bool", f"prim::Constant[value={kind}]()")
        made = p.name()
        returned = [second, constant] if kind == 0 else [constant, second]
        p.line(f"{made} : bool = prim::If({first})")
        for number, value in enumerate(returned):
            p.line(f"  block{number}():")
            p.line(f"    -> ({value})")
        return made
    if kind == 2:
        return p.add("bool", f"aten::__not__({_condition(p, numbers)})")
    compared = [p.one_of(*numbers), p.one_of(*numbers, "%c0", "%c0", "%c1")]
    p.random.shuffle(compared)
    return p.add("bool", f"aten::{p.one_of('lt', 'le', 'gt', 'ge', 'eq', 'ne')}({', '.join(compared)})")


def _overwrite(p: Maker) -> None:
    written = p.one_of(*p.tensors[-9:])
    kind = p.one_of("neg_", "zero_", "zero_", "zero_", "fill_", "copy_", "exp")
    value = {"fill_": ", %c1", "copy_": f", {p.tensor()}, %true"}.get(kind, "")
    made = p.add("Tensor", f"aten::{kind}({written}{value})")
    if kind == "exp" or p.chance(2):
        p.tensors.remove(made)


# -- chains of two views -------------------------------------------------------

STEPS = (
    *(f"aten::unsqueeze(X, {named(dim)})" for dim in (0, 1, -1, -2)),
    *(f"aten::transpose(X, {named(a)}, {named(b)})" for a, b in ((0, 1), (1, 0), (1, 2), (-1, -2), (0, -1))),
    *(f"aten::permute(X, {order})" for order in ([1, 0], [2, 0, 1], [-1, 0, 1], [0, -1, -2])),
    "onnx::Transpose[perm=[1, 2, 0]](X)",
    "onnx::Transpose(X)",
    *(f"onnx::Unsqueeze(X, {axes})" for axes in ([1, 0], [2, 0], [-1, -3], [0, -1])),
    "aten::t(X)",
    *(f"aten::view(X, {sizes})" for sizes in ("<0 %cm1>", "<%cm1 -1>", "<0 1 %cm1>")),
    *(f"aten::flatten(X, {dims})" for dims in ("%c1, %cm1", "%c0, %cm2")),
    *(f"aten::squeeze(X, {named(dim)})" for dim in (1, -2)),
    *(f"onnx::Reshape(X, {sizes})" for sizes in ([0, -1], [0, 0, -1])),
    *(f"onnx::Flatten[axis={axis}](X)" for axis in (1, -1)),
    "onnx::Slice(X, [1], [-9], [0], [-1])",
    *(f"aten::select(X, {named(dim)}, %c1)" for dim in (0, 1, -1)),
    *(
        f"aten::slice(X, {named(dim)}, {bounds})"
        for dim in (0, -1)
        for bounds in ("%c1, %none, %c1", "%cm1, %none, %c1")
    ),
    "aten::slice(X, %c0, %none, %none, %c2)",
    *(f"aten::expand(X, {sizes})" for sizes in ([2, -1], [2, -1, -1, -1])),
    *(
        f"aten::diagonal(X, {offset})"
        for offset in ("%c0, %c0, %c1", "%c1, %c0, %c1", "%c1, %c1, %c0", "%c0, %c1, %c2")
    ),
    *(f"aten::as_strided(X, {places})" for places in ("[2], [1], %c0", "[2, 2], [2, 4], %c1", "[1, 2], [4, 2], %c1")),
    "aten::tensor_split(X, [1, 2], %c0)",
    "aten::split(X, [1, 1], %c0)",
    "aten::alias(X)",
)
"""Views of X."""

RANKS = ((3,), (3, 2), (2, 3, 2), (2, 2, 3, 2))


def chain_program(*steps: str) -> Module:
    """A module that takes views of one another and, of each of them, what is at two places along each dimension."""
    p = Maker(Random(0))
    for step in steps:
        _step(p, step)
    for of in p.tensors:
        for dim in range(-3, 3):
            for index in (0, 1):
                p.line(f"{p.name()} : Tensor = aten::select({of}, {named(dim)}, {named(index)})")
    return parse_module(f"graph{HEAD}{''.join(p.lines)}  return (%x)\n")


def _step(p: Maker, step: str) -> None:
    x = p.tensors[-1]

    def sizes(found: re.Match[str]) -> str:
        """A list of numbers, and of the sizes of dimensions."""
        items = [n if "c" in n else p.add("int", f"aten::size({x}, {named(int(n))})") for n in found[1].split()]
        return p.add("int[]", f"prim::ListConstruct({', '.join(items)})")

    def constant(found: re.Match[str]) -> str:
        if step.startswith("aten"):
            return p.add("int[]", f"prim::Constant[value={found[0]}]()")
        return p.add(f"Long({found[0].count(',') + 1})", f"prim::Constant[value=tensor({found[0]})]()")

    operation = re.sub(r"<(.*)>", sizes, re.sub(r"\[[-\d, ]+\](?!\])", constant, step)).replace("X", x)
    made = p.add("Tensor[]" if "split" in step else "Tensor", operation)
    if "split" in step:
        p.add("Tensor", f"aten::__getitem__({made}, %c1)")


# -- what happens --------------------------------------------------------------


def addresses(x: Any) -> frozenset[int]:
    """The addresses of the elements of arrays in ``x``, in units of 2 bytes."""
    found: set[int] = set()
    for array in arrays(x):
        at = array.__array_interface__["data"][0] + np.arange(0, array.itemsize, 2)
        for size, stride in zip(array.shape, array.strides):
            at = np.add.outer(at, np.arange(size) * stride)
        found.update((at.ravel() // 2).tolist())
    return frozenset(found)


@dataclass
class Frame:
    """One run of a graph.

    Attributes:
        node: what runs; with the visible values.
        ended: when each node ran to its end last.
        writes: when which addresses were written.
        latest: of each block, the last node of this execution that read or wrote, and the addresses that it did.
    """

    db: AliasDb
    node: Node | None = None
    env: Env = field(default_factory=dict)
    ended: dict[Node, int] = field(default_factory=dict)
    writes: list[tuple[int, frozenset[int]]] = field(default_factory=list)
    latest: dict[Block, tuple[Node, Env, frozenset[int], frozenset[int]]] = field(default_factory=dict)


class Trace(Observer):
    """Raises AssertionError where the analysis denies what happens.

    Attributes:
        seen: how often parts of one tensor were compared that are said to be apart.
        unseen: how often a write ran of which it is said that nothing sees what it writes.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.seen = 0
        self.unseen = 0
        self._unread: dict[int, Node] = {}
        """Address -> the write that nothing is to see, if that has written there last."""
        self._dead: dict[Graph, list[Node]] = {}
        self._dbs: dict[Graph, AliasDb] = {}
        self._apart: dict[tuple[Value, Value], bool] = {}
        self._asked: set[tuple[Value | Node, ...]] = set()

    def start(self) -> None:
        """A new run begins."""
        self._shown: dict[int, tuple[Any, frozenset[int]]] = {}  # arrays are kept: memory is not used twice
        self._unread.clear()
        self._time = 0
        self._frames: list[Frame] = []

    def entered(self, block: Block, env: Env) -> None:
        if block.node is None:
            self._frames.append(Frame(self._db(block.graph)))
        for value in block.params:
            self._compare(value, env)

    def left(self, block: Block, env: Env) -> None:
        if block.node is None:
            self._frames.pop()
        if not self._frames:
            assert not self._unread, f"something may read at the end what {[*self._unread.values()]} wrote"

    def left_out(self, node: Node) -> None:
        if node.kind in WRITING:
            self._unread.clear()  # such a run fails
        self._frames[-1].ended.pop(node, None)

    def before(self, node: Node, env: Env) -> None:
        """What was written since an earlier node is written between that node and this one."""
        self._time += 1
        frame = self._frames[-1]
        frame.node, frame.env = node, env
        if node.kind not in READING:
            return
        value = node.inputs[0]
        read = self._addresses(env[value])
        for time, written in frame.writes[-6:]:
            for first in [n for n, ended in frame.ended.items() if ended < time][-8:]:
                if not written.isdisjoint(read) and self._is_new(value, first, node):
                    is_between = frame.db.writes_between(value, first, node)
                    assert is_between, f"%{value.name} is written between {first!r} and {node!r}"

    def after(self, node: Node, env: Env) -> None:
        frame = self._frames[-1]
        for value in node.outputs:
            self._compare(value, env)
        self._keep_unread(node, env)
        writes = node.kind in WRITING
        if writes:
            self._written(node, self._addresses(env[node.inputs[0]]))
        if writes or node.kind in READING:
            self._moved(frame, node, env, writes)
        self._time += 1
        frame.ended[node] = self._time

    def _keep_unread(self, node: Node, env: Env) -> None:
        """What nothing is to see is not read until it is overwritten."""
        is_dead = node in self._dead.get(node.graph, ())
        if not is_dead:
            for address in frozenset[int]().union(*(self._addresses(env[v]) for v in self._read(node, env))):
                assert address not in self._unread, f"{node!r} reads what {self._unread[address]!r} wrote"
        if node.kind in WRITING:
            for address in self._addresses(env[node.inputs[0]]):
                self._unread.pop(address, None)
                if is_dead:
                    self._unread[address] = node
        self.unseen += is_dead

    def _compare(self, value: Value, env: Env) -> None:
        db = self._frames[-1].db
        if not isinstance(value.type, TensorType) or not isinstance(env[value], np.ndarray):
            return
        shown = self._addresses(env[value])
        for other, x in env.items():
            if other is value or not isinstance(x, np.ndarray):
                continue
            pair = (value, other)
            if pair not in self._apart:
                self._apart[pair] = db.why_not(value, other).startswith("they lie")
            if self._apart[pair]:
                self.seen += 1
                assert shown.isdisjoint(self._addresses(x)), (
                    f"%{value.name} and %{other.name} overlap: {db.why_not(value, other)}"
                )

    def _written(self, writer: Node, written: frozenset[int]) -> None:
        """What is written has writers, and ``writer`` is among them, and whatever calls its graph."""
        for frame in self._frames:
            db, node = frame.db, frame.node
            assert node is not None
            frame.writes.append((self._time, written))
            for value, x in frame.env.items():
                is_written = isinstance(x, np.ndarray) and not written.isdisjoint(self._addresses(x))
                if is_written and self._is_new(value, node):
                    where = f"{node!r} changes %{value.name}"
                    assert db.has_writers(value) and db.has_writers(value, contained=False), where
                    assert db.writes_to_alias(node, value) and node in db.writers(value), where

    def _moved(self, frame: Frame, node: Node, env: Env, writes: bool) -> None:
        """Of two neighbours that read and write, one may only move past the other if they use other memory."""
        assert node.block is not None
        used = self._addresses(env[node.inputs[0]])
        if node.kind == "aten::as_strided_copy":
            used |= self._addresses(env[node.inputs[0]].base)
        written = used if writes else frozenset[int]()
        before = frame.latest.get(node.block)
        frame.latest[node.block] = node, env, used, written
        if before is not None and before[1] is env:
            first, _, used_then, written_then = before
            is_free = written.isdisjoint(used_then) and used.isdisjoint(written_then)
            if not is_free and self._is_new(first, node):
                assert not frame.db.can_move_before(node, first), f"{node!r} may move before {first!r}"

    def _is_new(self, *question: Value | Node) -> bool:
        """Whether something is asked for the first time."""
        is_new = question not in self._asked
        self._asked.add(question)
        return is_new

    def _read(self, node: Node, env: Env) -> Sequence[Value]:
        """The tensors of which ``node``, which has run, has read elements."""
        tensors = [v for v in node.inputs if isinstance(env[v], np.ndarray)]
        if node.kind in WRITING:
            return tensors if node.kind == "aten::neg_" else tensors[1:]
        if node.blocks or node.kind == "prim::CallFunction":
            return []
        shown = frozenset[int]().union(*map(self._addresses, arrays([env[v] for v in node.outputs])))
        is_view = any(not shown.isdisjoint(self._addresses(env[v])) for v in tensors)
        return tensors if shown and not is_view else []

    def _addresses(self, x: Any) -> frozenset[int]:
        found = self._shown.get(id(x))
        if found is None:
            self._shown[id(x)] = found = x, addresses(x)
        return found[1]

    def _db(self, graph: Graph) -> AliasDb:
        if graph not in self._dbs:
            self._dbs[graph] = analyze(graph, self.module)
            self._dead[graph] = dead_stores(self._dbs[graph])
        return self._dbs[graph]


def check(random: Random, make: Callable[[Random], Module] = view_program) -> tuple[int, int]:
    """As `run_all`, for a random program."""
    given = GIVEN + LARGEST if make is guarded_program else GIVEN
    return run_all(make(random), list(zip(random.sample(SHAPES, RUNS), random.choices(given, k=RUNS))))


def run_all(module: Module, runs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> tuple[int, int]:
    """How often parts that are said to be apart were compared, and writes that are said to be seen by nothing.

    AssertionError if what happens is denied.

    Args:
        module: what is run.
        runs: the shape of the tensor, and the numbers, that each run is given.
    """
    trace = Trace(module)
    entry = module.graphs.get("outer", module.main)
    run = Interpreter(module, trace, lenient=True)
    with np.errstate(all="ignore"):
        for shape, given in runs:
            trace.start()
            try:
                with suppress(KeyError):  # what is returned may have failed
                    run.block(entry.block, [np.ones(shape, np.float32), *given], {})
            except AssertionError as error:
                raise AssertionError(f"{error} (for {shape}, {given})\n{module}") from None
    return trace.seen, trace.unseen
