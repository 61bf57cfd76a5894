"""Five programs for each kind of view: do `%a` and `%b` ever share an element?

The truth is found by running a program on every size from 0 to 6 and every number from -3 to 6, and comparing the
places in memory of each element of `%a` and `%b`. What a program raises for some sizes says nothing.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import Graph, parse_graph
from tests.programs.interpreter import interpret

SIZES = range(7)
NUMBERS = range(-3, 7)

CONSTANTS = "".join(
    f"  %{'m' * (n < 0)}{abs(n)} : int = prim::Constant[value={n}]()\n" for n in (-3, -2, -1, 0, 1, 2, 3, 4, 5)
)
HEAD = "  %none : NoneType = prim::Constant()\n  %false : bool = prim::Constant[value=0]()\n" + CONSTANTS

KINDS: dict[str, list[str]] = {
    "select": [
        "%a = aten::select(%x, %0, %0) ; %b = aten::select(%x, %0, %1)",
        "%a = aten::select(%x, %0, %1) ; %b = aten::select(%x, %0, %m1)",
        "%a = aten::select(%x, %1, %m1) ; %b = aten::select(%x, %1, %m2)",
        "%a = aten::select(%x, %0, %0) ; %b = aten::select(%x, %1, %0)",
        "%a = aten::select(%x, %0, %n) ; %b = aten::select(%x, %0, %n)",
    ],
    "narrow": [
        "%a = aten::narrow(%x, %0, %0, %2) ; %b = aten::narrow(%x, %0, %2, %3)",
        "%a = aten::narrow(%x, %0, %0, %2) ; %b = aten::narrow(%x, %0, %1, %2)",
        "%a = aten::narrow(%x, %1, %1, %n) ; %b = aten::narrow(%x, %1, %0, %1)",
        "%a = aten::narrow(%x, %0, %m1, %1) ; %b = aten::narrow(%x, %0, %m3, %2)",
        "%s = aten::size(%x, %1) ; %p = aten::add(%s, %1) ; %a = aten::narrow(%x, %0, %0, %s) ; "
        "%b = aten::narrow(%x, %0, %p, %1)",
    ],
    "slice": [
        "%a = aten::slice(%x, %0, %none, %n, %1) ; %b = aten::slice(%x, %0, %n, %none, %1)",
        "%a = aten::slice(%x, %0, %0, %none, %2) ; %b = aten::slice(%x, %0, %1, %none, %2)",
        "%a = aten::slice(%x, %0, %none, %m2, %1) ; %b = aten::slice(%x, %0, %m2, %none, %1)",
        "%a = aten::slice(%x, %0, %0, %3, %1) ; %b = aten::slice(%x, %0, %2, %5, %1)",
        "%a = aten::slice(%x, %1, %m3, %m1, %1) ; %b = aten::slice(%x, %1, %m1, %none, %1)",
    ],
    "pieces": [
        "%l : Tensor[] = aten::unbind(%x, %0) ; %a = aten::__getitem__(%l, %0) ; %b = aten::__getitem__(%l, %1)",
        "%l : Tensor[] = aten::split(%x, %2, %0) ; %a = aten::__getitem__(%l, %0) ; %b = aten::__getitem__(%l, %2)",
        "%l : Tensor[] = aten::chunk(%x, %2, %1) ; %a, %b : Tensor = prim::ListUnpack(%l)",
        "%i : int[] = prim::ListConstruct(%1, %3) ; %l : Tensor[] = aten::tensor_split(%x, %i, %0) ; "
        "%a, %c, %b : Tensor = prim::ListUnpack(%l)",
        "%l : Tensor[] = aten::split(%x, %2, %0) ; %a = aten::__getitem__(%l, %0) ; "
        "%b = aten::slice(%x, %0, %1, %3, %1)",
    ],
    "squeeze": [
        "%u = aten::unsqueeze(%x, %0) ; %a = aten::select(%u, %1, %0) ; %b = aten::select(%x, %0, %1)",
        "%u = aten::unsqueeze(%x, %1) ; %a = aten::select(%u, %2, %0) ; %b = aten::select(%x, %1, %2)",
        "%u = aten::unsqueeze(%x, %1) ; %a = aten::select(%u, %2, %0) ; %b = aten::select(%x, %0, %0)",
        "%u = aten::slice(%x, %0, %0, %2, %1) ; %a = aten::squeeze(%u) ; %b = aten::slice(%x, %0, %2, %none, %1)",
        "%u = aten::slice(%x, %1, %0, %1, %1) ; %a = aten::squeeze(%u, %1) ; %b = aten::select(%x, %1, %1)",
    ],
    "view": [
        "%s : int[] = prim::ListConstruct(%m1) ; %u = aten::slice(%x, %0, %0, %2, %1) ; %a = aten::view(%u, %s) ; "
        "%b = aten::slice(%x, %0, %2, %4, %1)",
        "%s : int[] = prim::ListConstruct(%m1) ; %u = aten::reshape(%x, %s) ; "
        "%a = aten::slice(%u, %0, %0, %2, %1) ; %b = aten::slice(%u, %0, %2, %4, %1)",
        "%s : int[] = prim::ListConstruct(%m1) ; %u = aten::reshape(%x, %s) ; %a = aten::select(%u, %0, %0) ; "
        "%b = aten::select(%x, %0, %0)",
        "%u = aten::slice(%x, %0, %0, %1, %1) ; %a = aten::flatten(%u, %0, %1) ; %b = aten::select(%x, %0, %1)",
        "%a = aten::view_as(%x, %x) ; %b = aten::select(%x, %0, %0)",
    ],
    "transpose": [
        "%u = aten::t(%x) ; %a = aten::select(%u, %0, %0) ; %b = aten::select(%u, %0, %1)",
        "%u = aten::t(%x) ; %a = aten::select(%u, %0, %0) ; %b = aten::select(%x, %1, %1)",
        "%u = aten::transpose(%x, %0, %1) ; %a = aten::select(%u, %1, %0) ; %b = aten::select(%x, %0, %1)",
        "%p : int[] = prim::ListConstruct(%1, %0) ; %u = aten::permute(%x, %p) ; %a = aten::select(%u, %0, %0) ; "
        "%b = aten::select(%x, %0, %1)",
        "%p : int[] = prim::ListConstruct(%1, %0) ; %u = aten::permute(%x, %p) ; "
        "%a = aten::slice(%u, %0, %0, %2, %1) ; %b = aten::slice(%x, %1, %2, %none, %1)",
    ],
    "expand": [
        "%u = aten::select(%x, %0, %0) ; %v = aten::expand_as(%u, %x) ; %a = aten::select(%v, %0, %0) ; "
        "%b = aten::select(%v, %0, %1)",
        "%u = aten::select(%x, %0, %0) ; %a = aten::expand_as(%u, %x) ; %b = aten::select(%x, %0, %1)",
        "%u = aten::slice(%x, %0, %0, %1, %1) ; %a = aten::expand_as(%u, %x) ; %b = aten::slice(%x, %0, %1, %none, %1)",
        "%u = aten::slice(%x, %1, %0, %1, %1) ; %a = aten::expand_as(%u, %x) ; %b = aten::select(%x, %0, %0)",
        "%u = aten::slice(%x, %1, %0, %1, %1) ; %a = aten::expand_as(%u, %x) ; %b = aten::select(%x, %1, %1)",
    ],
    "diagonal": [
        "%a = aten::diagonal(%x, %0, %0, %1) ; %b = aten::select(%x, %0, %0)",
        "%u = aten::slice(%x, %0, %0, %2, %1) ; %a = aten::diagonal(%u, %0, %0, %1) ; %b = aten::select(%x, %0, %2)",
        "%a = aten::diagonal(%x, %0, %0, %1) ; %b = aten::diagonal(%x, %1, %0, %1)",
        "%u = aten::slice(%x, %1, %2, %none, %1) ; %a = aten::diagonal(%u, %0, %0, %1) ; %b = aten::select(%x, %1, %1)",
        "%u = aten::diagonal(%x, %0, %0, %1) ; %a = aten::select(%u, %0, %0) ; %b = aten::select(%u, %0, %1)",
    ],
    "as_strided": [
        "%s : int[] = prim::ListConstruct(%2) ; %t : int[] = prim::ListConstruct(%1) ; "
        "%a = aten::as_strided(%x, %s, %t, %0) ; %b = aten::select(%x, %0, %0)",
        "%s : int[] = prim::ListConstruct(%2) ; %t : int[] = prim::ListConstruct(%1) ; "
        "%u = aten::select(%x, %0, %1) ; %a = aten::as_strided(%u, %s, %t, %0) ; %b = aten::select(%x, %0, %0)",
        "%s : int[] = prim::ListConstruct(%2) ; %t : int[] = prim::ListConstruct(%1) ; "
        "%a = aten::as_strided(%x, %s, %t, %0) ; %b = aten::as_strided(%x, %s, %t, %1)",
        "%s : int[] = prim::ListConstruct(%2) ; %t : int[] = prim::ListConstruct(%1) ; "
        "%a = aten::as_strided(%x, %s, %t, %0) ; %b = aten::as_strided(%x, %s, %t, %2)",
        "%s : int[] = prim::ListConstruct(%2) ; %t : int[] = prim::ListConstruct(%2) ; "
        "%a = aten::as_strided(%x, %s, %t, %0) ; %b = aten::as_strided(%x, %s, %t, %1)",
    ],
    "onnx": [
        "%s : Long(1) = prim::Constant[value=tensor([0])]() ; %e : Long(1) = prim::Constant[value=tensor([2])]() ; "
        "%f : Long(1) = prim::Constant[value=tensor([9])]() ; %a = onnx::Slice(%x, %s, %e) ; "
        "%b = onnx::Slice(%x, %e, %f)",
        "%s : Long(1) = prim::Constant[value=tensor([0])]() ; %e : Long(1) = prim::Constant[value=tensor([2])]() ; "
        "%f : Long(1) = prim::Constant[value=tensor([1])]() ; %a = onnx::Slice(%x, %s, %e) ; "
        "%b = onnx::Slice(%x, %f, %e)",
        "%a, %b : Tensor = onnx::Split[axis=0, num_outputs=2](%x)",
        "%a, %c, %b : Tensor = onnx::Split[axis=1, num_outputs=3](%x)",
        "%s : Long(1) = prim::Constant[value=tensor([0])]() ; %e : Long(1) = prim::Constant[value=tensor([2])]() ; "
        "%f : Long(1) = prim::Constant[value=tensor([9])]() ; %c : Long(1) = prim::Constant[value=tensor([1])]() ; "
        "%a = onnx::Slice(%x, %s, %e, %c) ; %b = onnx::Slice(%x, %e, %f, %c)",
    ],
    "chain": [
        "%u = aten::slice(%x, %0, %1, %none, %1) ; %a = aten::select(%u, %0, %0) ; %b = aten::select(%x, %0, %0)",
        "%u = aten::slice(%x, %0, %1, %none, %1) ; %a = aten::select(%u, %0, %0) ; %b = aten::select(%x, %0, %1)",
        "%u = aten::slice(%x, %0, %none, %none, %1) ; %v = aten::slice(%x, %0, %0, %none, %1) ; "
        "%a = aten::slice(%u, %1, %none, %m1, %1) ; %b = aten::select(%v, %1, %m1)",
        "%s = aten::size(%x, %1) ; %p = aten::add(%s, %1) ; %a = aten::select(%x, %0, %s) ; "
        "%b = aten::select(%x, %0, %p)",
        "%u = aten::select(%x, %0, %0) ; %v = aten::select(%x, %0, %1) ; %a = aten::slice(%u, %0, %0, %2, %1) ; "
        "%b = aten::slice(%v, %0, %0, %2, %1)",
    ],
}

PROGRAMS = [(kind, number) for kind, bodies in KINDS.items() for number in range(len(bodies))]


def program(kind: str, number: int) -> Graph:
    """The graph of a program, of a matrix `%x` and a number `%n`; it returns `%a` and `%b`."""
    body = ""
    for line in KINDS[kind][number].split(" ; "):
        made, _, rest = line.partition(" = ")
        type = "" if ":" in made else " : int" if rest.startswith(("aten::size", "aten::add")) else " : Tensor"
        names = [f"{name} : Tensor" for name in made.partition(" :")[0].split(", ")] if made.count(",") else None
        body += f"  {', '.join(names) if names else made + type} = {rest}\n"
    return parse_graph(f"graph(%x : Tensor, %n : int):\n{HEAD}{body}  return (%a, %b)\n")


@cache
def share(kind: str, number: int) -> bool:
    """Whether `%a` and `%b` share an element for some sizes."""
    graph = program(kind, number)
    uses_number = bool(graph.value("n").uses)
    return any(
        meet(graph, np.arange(rows * columns, dtype=np.float32).reshape(rows, columns), n)
        for rows, columns in product(SIZES, SIZES)
        for n in (NUMBERS if uses_number else [0])
    )


def meet(graph: Graph, x: Any, n: int) -> bool:
    try:
        a, b = interpret(graph, [x, n])
    except (Error, IndexError, ValueError):
        return False
    return not set(places(a)).isdisjoint(places(b))


def places(x: Any) -> Iterator[int]:
    """The addresses of the elements of an array."""
    start = x.__array_interface__["data"][0]
    for index in np.ndindex(x.shape):
        yield start + sum(i * step for i, step in zip(index, x.strides))
