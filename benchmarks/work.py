"""Graphs that grow, in which passes find work that `families` leaves them none of: a family for each of those.

What passes such as ``freeze`` do takes constants, functions or objects. So
these are made by a builder, not read from text that PyTorch could read too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irc.ir import Builder, DType, Graph, Module, Tensor, parse_graph, parse_module, types
from irc.ir.objects import Object
from irc.ir.types import ClassType


def caches(n: int) -> Graph:
    """For ``growable``: n / 2 caches that are extended, each read once, all results of the graph."""
    count = range(n // 2)
    lines = [f"graph(%x : Float(1), {', '.join(f'%p{i} : Float(*)' for i in count)}):"]
    for i in count:
        lines += [f"  %q{i} : Float(*) = onnx::Concat[axis=0](%p{i}, %x)", f"  %r{i} : Float(*) = onnx::Relu(%q{i})"]
    return parse_graph("\n".join([*lines, f"  return ({', '.join(f'%q{i}, %r{i}' for i in count)})\n"]))


def numbers(n: int) -> Graph:
    """For ``constant-fold`` and ``constant-pool``: every other number that is added follows from constants."""
    lines = ["graph(%v0 : Tensor):", "  %one : int = prim::Constant[value=1]()"]
    for i in range(n // 5):
        lines += [
            f"  %a{i} : int = prim::Constant[value={i}]()",
            f"  %b{i} : int = prim::Constant[value={i // 2}]()",
            f"  %s{i} : int = aten::add(%a{i}, %b{i})",
            f"  %t{i} : Tensor = aten::add(%v{i}, %s{i}, %one)",
            f"  %v{i + 1} : Tensor = aten::mul(%t{i}, %b{i})",
        ]
    return parse_graph("\n".join([*lines, f"  return (%v{n // 5})\n"]))


def convolutions(n: int) -> Graph:
    """For ``conv-bn-fold``: convolutions, each with weights of its own and followed by a normalisation."""
    graph = Graph()
    b = Builder(graph)
    x = graph.add_input(types.tensor(DType.FLOAT, (1, 1, 4, 4)), "x")
    parameters = [b.constant(Tensor.of(np.full(1, v, np.float32))) for v in (1.5, 0.5, 0.25, 2.0)]
    for i in range(n // 3):
        weights = b.constant(graph.weights.add(f"w{i}", Tensor.of(np.full((1, 1, 1, 1), i + 1, np.float32))))
        x = b.op("onnx::Conv", x, weights, version=11)
        x = b.op("onnx::BatchNormalization", x, *parameters, version=15)
    graph.set_outputs([x])
    return graph


def calls(n: int) -> Module:
    """For ``inline``: calls of a function of ten nodes, n nodes when they are inlined."""
    lines = ["graph(%v0 : Tensor):", '  %f : Function = prim::Constant[name="f"]()']
    lines += [f"  %v{i + 1} : Tensor = prim::CallFunction(%f, %v{i})" for i in range(n // 10)]
    lines += [f"  return (%v{n // 10})", "", "graph f(%r0 : Tensor):"]
    lines += [f"  %r{i + 1} : Tensor = aten::{('relu', 'neg')[i % 2]}(%r{i})" for i in range(10)]
    return parse_module("\n".join([*lines, "  return (%r10)\n"]))


def attributes(n: int) -> Module:
    """For ``freeze``: an object with n / 2 tensors, each read and multiplied with."""
    lines = ["graph(%self : __torch__.M, %v0 : Tensor):"]
    for i in range(n // 2):
        lines.append(f'  %a{i} : Tensor = prim::GetAttr[name="a{i}"](%self)')
        lines.append(f"  %v{i + 1} : Tensor = aten::mul(%v{i}, %a{i})")
    module = parse_module("\n".join([*lines, f"  return (%v{n // 2})\n"]))
    held = {f"a{i}": Tensor.of(np.full(1, i, np.float32), name=f"a{i}") for i in range(n // 2)}
    module.objects["self"] = Object(ClassType("__torch__.M"), held)
    return module


def readers(n: int) -> Graph:
    """For ``in-place``: n / 2 readers of one value, each with a result that is added to a sum."""
    lines = ["graph(%x : Float(1)):", "  %a : Float(1) = onnx::Relu(%x)", "  %v0 : Float(1) = onnx::Neg(%x)"]
    for i in range(n // 2):
        lines += [f"  %s{i} : Float(1) = onnx::Exp(%a)", f"  %v{i + 1} : Float(1) = onnx::Add(%v{i}, %s{i})"]
    return parse_graph("\n".join([*lines, f"  return (%v{n // 2})\n"]))


def functions(n: int) -> Module:
    """For ``cse``: n / 30 functions that write their arguments, make ten values twice each, and call the next."""
    last = n // 30
    parts = ["graph(%x : Tensor):", *_call("f0", "x"), "  return (%y)\n"]
    for i in range(last):
        parts += [f"graph f{i}(%x : Tensor):", "  %d0 : Tensor = aten::relu_(%x)"]
        for j in range(10):
            parts += [f"  %b{j} : Tensor = aten::neg(%d{j})", f"  %c{j} : Tensor = aten::neg(%d{j})"]
            parts.append(f"  %d{j + 1} : Tensor = aten::mul(%b{j}, %c{j})")
        parts += [*_call(f"f{i + 1}", "d10"), "  return (%y)\n"]
    return parse_module("\n".join([*parts, f"graph f{last}(%x : Tensor):", "  return (%x)\n"]))


def _call(name: str, argument: str) -> list[str]:
    return [
        f'  %f : Function = prim::Constant[name="{name}"]()',
        f"  %y : Tensor = prim::CallFunction(%f, %{argument})",
    ]


def merges(n: int) -> Graph:
    """For ``in-place`` and ``remove-mutation``: Ifs that write or make a tensor, each at a place more than the last."""
    text = ["graph(%x : Float(2), %c : bool):", "  %v0 : Float(2) = aten::neg(%x)"]
    for i in range(n // 3):
        text += [
            f"  %v{i + 1} : Float(2) = prim::If(%c)",
            "    block0():",
            f"      %a{i} : Float(2) = aten::relu_(%v{i})",
            f"      -> (%a{i})",
            "    block1():",
            f"      %b{i} : Float(2) = aten::abs(%v{i})",
            f"      -> (%b{i})",
        ]
    return parse_graph("\n".join([*text, f"  return (%v{n // 3})", ""]))


def written(n: int) -> Graph:
    """For ``remove-mutation``: n / 2 tensors that are made and written, each by itself, all results of the graph."""
    count = range(n // 2)
    text = ["graph(%x : Float(2)):", *(f"  %v{i} : Float(2) = aten::neg(%x)" for i in count)]
    text += [f"  %w{i} : Float(2) = aten::relu_(%v{i})" for i in count]
    return parse_graph("\n".join([*text, f"  return ({', '.join(f'%v{i}' for i in count)})", ""]))


def cycle(n: int) -> Module:
    """For ``cse``: n / 5 functions that make a value twice, and call each other in a cycle."""
    last = n // 5
    parts = ["graph(%x : Tensor):", *_call("f0", "x"), "  return (%y)\n"]
    for i in range(last):
        parts += [f"graph f{i}(%x : Tensor):", "  %a : Tensor = aten::neg(%x)", "  %b : Tensor = aten::neg(%x)"]
        parts += ["  %c : Tensor = aten::mul(%a, %b)", *_call(f"f{(i + 1) % last}", "c"), "  return (%y)\n"]
    return parse_module("\n".join(parts))


def helpers(n: int) -> Module:
    """For ``inline``: n / 3 functions that call each other in a cycle, each with a helper of its own."""
    last = n // 3
    parts = ["graph(%x : Tensor):", *_call("f0", "x"), "  return (%y)\n"]
    for i in range(last):
        parts += [f"graph f{i}(%x : Tensor):", f'  %h : Function = prim::Constant[name="h{i}"]()']
        parts += ["  %a : Tensor = prim::CallFunction(%h, %x)", *_call(f"f{(i + 1) % last}", "a"), "  return (%y)\n"]
        parts += [f"graph h{i}(%x : Tensor):", "  %y : Tensor = aten::relu(%x)", "  return (%y)\n"]
    return parse_module("\n".join(parts))


FAMILIES: dict[str, Callable[[int], Graph | Module]] = {
    "caches": caches,
    "numbers": numbers,
    "convolutions": convolutions,
    "calls": calls,
    "attributes": attributes,
    "readers": readers,
    "functions": functions,
    "cycle": cycle,
    "helpers": helpers,
    "merges": merges,
    "written": written,
}
"""Name -> what makes a graph of about so many nodes."""
