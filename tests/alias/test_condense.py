"""Condensed summaries say what whole ones do: random modules, whose functions call each other, in cycles too."""

from collections.abc import Callable, Iterator
from itertools import count, pairwise
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from irc.alias import analyze
from irc.alias.facts import Element, Facts
from irc.alias.memory_types import has_memory
from irc.alias.summaries import Condensed
from irc.ir import parse_module
from tests.effort import slow_if

KINDS = ("relu", "t", "relu_", "append", "load", "list", "join", "join", "call", "call")


def module(random: Random) -> str:
    functions = random.randint(1, 5)
    lines: list[str] = []
    for name in ["main", *(f"f{i}" for i in range(functions))]:
        tensors, lists = ["%x", "%y"], ["%l"]
        lines += [f"graph {name}(%x : Tensor, %y : Tensor, %l : Tensor[]):"]
        lines += ["  %zero : int = prim::Constant[value=0]()", "  %true : bool = prim::Constant[value=1]()"]
        lines += ["  %a : Tensor = aten::relu(%x)", "  %m : Tensor[] = prim::ListConstruct(%a)"]
        if name == "main":
            tensors, lists = ["%x", "%a"], ["%m", "%l"]
        body = Body(random, functions)
        lines += ["  " + line for line in body.nodes(random.randint(2, 7), tensors, lists)]
        lines.append(f"  return ({random.choice(tensors)}, {tensors[-1]}, {random.choice(lists)})")
    return "\n".join(lines)


class Body:
    def __init__(self, random: Random, functions: int) -> None:
        self.pick, self.random, self.functions, self.numbers = random.choice, random, functions, count()

    def nodes(self, n: int, tensors: list[str], lists: list[str], depth: int = 0) -> Iterator[str]:
        for _ in range(n):
            kind, i = self.pick(KINDS), next(self.numbers)
            tensor, held = self.pick(tensors), self.pick(lists)
            made: list[str] = [f"%v{i}"]
            if kind == "append":
                yield f"%v{i} : Tensor[] = aten::append({held}, {tensor})"
                continue
            if kind == "list":
                yield f"%v{i} : Tensor[] = prim::ListConstruct({tensor})"
                lists.append(f"%v{i}")
                continue
            if kind == "load":
                yield f"%v{i} : Tensor = aten::__getitem__({held}, %zero)"
            elif kind == "call":
                yield f'%f{i} : Function = prim::Constant[name="f{self.random.randrange(self.functions)}"]()'
                arguments = f"%f{i}, {tensor}, {self.pick(tensors)}, {held}"
                yield f"%v{i} : Tensor, %u{i} : Tensor, %l{i} : Tensor[] = prim::CallFunction({arguments})"
                made.append(f"%u{i}")
                lists.append(f"%l{i}")
            elif kind != "join":
                yield f"%v{i} : Tensor = aten::{kind}({tensor})"
            elif depth == 2:
                continue
            else:
                yield f"%v{i} : Tensor = prim::If(%true)"
                for block in (0, 1):
                    yield f"  block{block}():"
                    inner = list(tensors)
                    for line in self.nodes(self.random.randint(0, 2), inner, list(lists), depth + 1):
                        yield "    " + line
                    yield f"    -> ({inner[-1]})"
            tensors += made


def linked(random: Random) -> str:
    """Functions that read, walk along and change lists that are linked: what is loaded is loaded from in turn."""
    functions = random.randint(1, 4)
    lines: list[str] = []
    for name in ["main", *(f"f{i}" for i in range(functions))]:
        tensors, items = ["%x"], ["%o", "%p"]
        lines += [f"graph {name}(%x : Tensor, %o : m.Item, %p : m.Item, %n : int):"]
        lines += ["  %true : bool = prim::Constant[value=1]()"]
        if name == "main":
            items = ["%a", "%b", "%c"]
            lines += [f"  {item} : m.Item = prim::CreateObject()" for item in items]
            lines += [f'  prim::SetAttr[name="next"]({a}, {b})' for a, b in pairwise(items)]
            lines += [f"  %y{item[1:]} : Tensor = aten::relu(%x)" for item in items]
            lines += [f'  prim::SetAttr[name="value"]({item}, %y{item[1:]})' for item in items]
        for i in range(random.randint(3, 9)):
            item, tensor = random.choice(items), random.choice(tensors)
            match random.choice(("next", "next", "value", "value", "set", "link", "either", "walk", "relu_", "call")):
                case "next" | "value" as attribute:
                    type = "m.Item" if attribute == "next" else "Tensor"
                    lines.append(f'  %v{i} : {type} = prim::GetAttr[name="{attribute}"]({item})')
                    (items if attribute == "next" else tensors).append(f"%v{i}")
                case "set":
                    lines.append(f'  prim::SetAttr[name="value"]({item}, {tensor})')
                case "link":
                    lines.append(f'  prim::SetAttr[name="next"]({item}, {random.choice(items)})')
                case "either":
                    lines += [f"  %v{i} : m.Item = prim::If(%true)", "    block0():", f"      -> ({item})"]
                    lines += ["    block1():", f"      -> ({random.choice(items)})"]
                    items.append(f"%v{i}")
                case "walk":
                    lines += [f"  %v{i} : m.Item = prim::Loop(%n, %true, {item})"]
                    lines += [f"    block0(%i{i} : int, %w{i} : m.Item):"]
                    lines += [f'      %u{i} : m.Item = prim::GetAttr[name="next"](%w{i})', f"      -> (%true, %u{i})"]
                    items.append(f"%v{i}")
                case "relu_":
                    lines.append(f"  %v{i} : Tensor = aten::relu_({tensor})")
                    tensors.append(f"%v{i}")
                case _:
                    lines.append(f'  %f{i} : Function = prim::Constant[name="f{random.randrange(functions)}"]()')
                    arguments = f"%f{i}, {tensor}, {item}, {random.choice(items)}, %n"
                    lines.append(f"  %v{i} : Tensor, %r{i} : m.Item = prim::CallFunction({arguments})")
                    tensors.append(f"%v{i}")
                    items.append(f"%r{i}")
        lines.append(f"  return ({random.choice(tensors)}, {random.choice(items)})")
    return "\n".join(lines)


def plain(self: Condensed, facts: Facts, growing: set[Element], used: set[Element], written: set[Element]) -> None:
    every = range(len(facts.targets))
    self.same = {e: e for e in every}
    self.targets = {e: list(facts.targets_of(e)) for e in every}


def answers(text: str) -> list[Any]:
    graph = parse_module(text).main
    db = analyze(graph)
    values = [v for v in (*graph.inputs, *(v for n in graph.nodes for v in n.outputs)) if has_memory(v.type)]
    pairs = [(a.name, b.name, db.may_alias(a, b), db.may_contain_alias(a, b)) for a in values for b in values]
    written = [(v.name, db.has_writers(v), [db.writes_to_alias(n, v) for n in graph.nodes]) for v in values]
    return [*pairs, *written, *((str(n), db.is_mutable(n)) for n in graph.nodes)]


@pytest.mark.parametrize("made", [module, linked])
@pytest.mark.parametrize("seed", slow_if(range(4), range(1, 4)))
def test_condensed_summaries_say_what_whole_ones_do(seed: int, made: Callable[[Random], str]) -> None:
    random = Random(seed)
    for _ in range(100):
        text = made(random)
        with patch.object(Condensed, "__init__", plain):
            expected = answers(text)
        assert answers(text) == expected, text
