"""What inference says of sizes and of shape arithmetic is so in runs, of random programs of shape arithmetic."""

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.ir import parse_graph
from irc.ir.polynomials import Polynomial, UnknownSize
from irc.passes.shapes import Inference
from tests.effort import slow_if

NAMES = "abc"
INPUTS = {"x": ("a", "b", 4), "y": ("a", "c"), "z": ("b", 4), "v": ("c",), "w": (None, 3)}

Array = np.ndarray[Any, Any]


class Program:
    """Random shape arithmetic: numbers (0-d), shapes (1-d, by how many elements), and tensors (by rank)."""

    def __init__(self, seed: int, nodes: int) -> None:
        self.random = random.Random(seed)
        self.statements: list[str] = []
        self.numbers: list[str] = []
        self.shapes: list[tuple[str, int]] = []
        self.tensors: list[tuple[str, int]] = [(name, len(shape)) for name, shape in INPUTS.items()]
        self.truths: list[str] = []
        self.count = 0
        for number in (0, 1, 2, -1):
            self.number(number)
        for _ in range(nodes):
            self.random.choice(STEPS)(self)

    def op(self, kind: str, *inputs: str, type: str = "Tensor") -> str:
        self.count += 1
        self.statements.append(f"  %t{self.count} : {type} = onnx::{kind}({', '.join(f'%{i}' for i in inputs)})")
        return f"t{self.count}"

    def constant(self, values: list[int], shape: str) -> str:
        self.count += 1
        self.statements.append(f"  %t{self.count} : Long({shape}) = prim::Constant[value=tensor({values})]()")
        return f"t{self.count}"

    def number(self, value: int) -> str:
        self.numbers.append(self.constant([value], ""))
        return self.numbers[-1]

    def any_number(self) -> str:
        return self.random.choice(self.numbers[-12:] if self.random.random() < 0.7 else self.numbers)

    def tensor(self, rank: int | None = None) -> tuple[str, int]:
        found = [t for t in self.tensors if rank is None or t[1] == rank]
        return self.random.choice(found[-8:] if self.random.random() < 0.7 else found)

    def shape(self, count: int) -> str:
        """A shape of ``count`` elements, put together of numbers."""
        fitting = [name for name, n in self.shapes if n == count]
        if fitting and self.random.random() < 0.4:
            return self.random.choice(fitting)
        if not count:
            return self.constant([], "0")
        axes = self.constant([0], "1")
        parts = [self.op("Unsqueeze", self.any_number(), axes) for _ in range(count)]
        return self.keep(self.op("Concat[axis=0]", *parts), count)

    def keep(self, name: str, count: int) -> str:
        self.shapes.append((name, count))
        return name

    def made(self, name: str, rank: int) -> None:
        if rank < 5:
            self.tensors.append((name, rank))

    # -- steps -----------------------------------------------------------

    def take_size(self) -> None:
        if self.shapes and self.random.random() < 0.5:
            name, count = self.random.choice(self.shapes)
        else:
            tensor, count = self.tensor()
            name = self.keep(self.op("Shape", tensor), count)
        if count:
            index = self.constant([self.random.randrange(-count, count)], "")
            self.numbers.append(self.op("Gather[axis=0]", name, index))

    def arithmetic(self) -> None:
        kind = self.random.choice("Add Add Sub Sub Mul Div Min Max Neg".split())
        operands = [self.any_number() for _ in range(1 if kind == "Neg" else 2)]
        self.numbers.append(self.op(kind, *operands))

    def compare(self) -> None:
        kind = self.random.choice("Equal Less LessOrEqual Greater GreaterOrEqual".split())
        self.truths.append(self.op(kind, self.any_number(), self.any_number()))
        if self.random.random() < 0.2:
            self.truths.append(self.op("Not", self.truths[-1]))

    def choose(self) -> None:
        if self.truths:
            condition = self.random.choice(self.truths)
            self.numbers.append(self.op("Where", condition, self.any_number(), self.any_number()))

    def branch(self) -> None:
        if not self.truths:
            return
        rank = self.random.choice((1, 2))
        (first, _), (second, _) = self.tensor(rank), self.tensor(rank)
        self.count += 1
        here = f"t{self.count}"
        lines = [
            f"  %{here} : Tensor = prim::If(%{self.random.choice(self.truths)})",
            "    block0():",
            f"      %{here}a : Tensor = onnx::Abs(%{first})",
            f"      -> (%{here}a)",
            "    block1():",
            f"      %{here}b : Tensor = onnx::Neg(%{second})",
            f"      -> (%{here}b)",
        ]
        self.statements.append("\n".join(lines))
        self.made(here, rank)

    def product_of_sizes(self) -> None:
        name, _ = self.random.choice(self.shapes) if self.shapes else ("", 0)
        if name:
            self.numbers.append(self.op("ReduceProd[keepdims=0]", name))

    def part_of_shape(self) -> None:
        if self.shapes:
            name, count = self.random.choice(self.shapes)
            start, end = sorted((self.random.randint(0, count), self.random.randint(0, count)))
            bounds = [self.constant([n], "1") for n in (start, end)]
            self.keep(self.op("Slice", name, *bounds), end - start)

    def fill(self) -> None:
        rank = self.random.randint(0, 3)
        self.made(self.op("ConstantOfShape", self.shape(rank)), rank)

    def expand(self) -> None:
        tensor, rank = self.tensor()
        wide = max(rank, self.random.randint(0, 3))
        self.made(self.op("Expand", tensor, self.shape(wide)), wide)

    def reshape(self) -> None:
        tensor, rank = self.tensor()
        others = [t for t, r in self.tensors if r == rank]
        chance = self.random.random()
        if chance < 0.3:
            target, count = self.op("Shape", self.random.choice(others)), rank
        elif chance < 0.6 and rank:  # all axes before some one, and what is left
            keep = self.random.randint(0, rank - 1)
            part = self.op("Slice", self.op("Shape", tensor), self.constant([0], "1"), self.constant([keep], "1"))
            target, count = self.op("Concat[axis=0]", part, self.constant([-1], "1")), keep + 1
        else:
            count = self.random.randint(1, 3)
            target = self.shape(count)
        self.made(self.op("Reshape", tensor, target), count)

    def slice(self) -> None:
        tensor, rank = self.tensor()
        if rank:
            axis = self.constant([self.random.randrange(rank)], "1")
            self.made(self.op("Slice", tensor, self.shape(1), self.shape(1), axis), rank)

    def join(self) -> None:
        tensor, rank = self.tensor()
        if rank:
            others = [tensor, *(self.tensor(rank)[0] for _ in range(self.random.randint(0, 2)))]
            self.made(self.op(f"Concat[axis={self.random.randrange(rank)}]", *others), rank)

    def turn(self) -> None:
        tensor, rank = self.tensor()
        perm = self.random.sample(range(rank), rank)
        self.made(self.op(f"Transpose[perm={perm}]", tensor), rank)

    def unsqueeze(self) -> None:
        tensor, rank = self.tensor()
        axis = self.constant([self.random.randint(0, rank)], "1")
        self.made(self.op("Unsqueeze", tensor, axis), rank + 1)

    def flatten(self) -> None:
        tensor, rank = self.tensor()
        self.made(self.op(f"Flatten[axis={self.random.randint(0, rank)}]", tensor), 2)

    def add(self) -> None:
        (first, m), (second, n) = self.tensor(), self.tensor()
        self.made(self.op("Add", first, second), max(m, n))

    def multiply(self) -> None:
        tensor, rank = self.tensor()
        if rank >= 2:
            perm = [*range(rank - 2), rank - 1, rank - 2]
            self.made(self.op("MatMul", tensor, self.op(f"Transpose[perm={perm}]", self.tensor(rank)[0])), rank)

    def pad(self) -> None:
        tensor, rank = self.tensor()
        self.made(self.op("Pad", tensor, self.shape(2 * rank)), rank)

    def tile(self) -> None:
        tensor, rank = self.tensor()
        self.made(self.op("Tile", tensor, self.shape(rank)), rank)

    def count_up(self) -> None:
        step = self.numbers[1] if self.random.random() < 0.8 else self.any_number()
        line = self.op("Range", self.any_number(), self.any_number(), step)
        self.made(self.op("Cast[to=1]", line), 1)

    def search(self) -> None:
        self.made(self.op("Cast[to=1]", self.op("NonZero", self.tensor()[0])), 2)

    def upsample(self) -> None:
        tensor, rank = self.tensor()
        if rank:
            self.count += 1
            scales = [float(self.random.choice((1, 2, 3))) for _ in range(rank)]
            here = f"t{self.count}"
            self.statements.append(f"  %{here} : Float({rank}) = prim::Constant[value=tensor({scales})]()")
            none = self.op("Identity", here)
            self.made(self.op("Resize[mode='nearest']".replace("'", '"'), tensor, none, here), rank)


STEPS: list[Callable[[Program], None]] = [
    *(4 * [Program.take_size, Program.arithmetic]),
    *(2 * [Program.reshape, Program.slice, Program.join, Program.expand]),
    Program.compare,
    Program.choose,
    Program.branch,
    Program.product_of_sizes,
    Program.part_of_shape,
    Program.fill,
    Program.turn,
    Program.unsqueeze,
    Program.flatten,
    Program.add,
    Program.multiply,
    Program.pad,
    Program.tile,
    Program.count_up,
    Program.search,
    Program.upsample,
]


def feeds(seed: int, least: int) -> tuple[dict[str, int], dict[str, Array]]:
    rng = random.Random(seed)
    sizes = {name: rng.randint(least, 3) for name in NAMES}
    shapes = {name: [sizes[d] if isinstance(d, str) else d or 2 for d in shape] for name, shape in INPUTS.items()}
    numbers = np.random.default_rng(seed)
    return sizes, {name: numbers.integers(-2, 3, shape).astype(np.float32) for name, shape in shapes.items()}


def worth(size: Any, sizes: dict[str, int], arrays: dict[str, Array]) -> int:
    """What ``size`` comes to in a run."""
    if isinstance(size, Polynomial):
        return sum(
            n * int(np.prod([worth(of, sizes, arrays) ** power for of, power in term])) for term, n in size.terms
        )
    if isinstance(size, UnknownSize):
        return arrays[size.value.name].shape[size.axis]
    return sizes[size] if isinstance(size, str) else size


def graph_text(statements: list[str], outputs: list[str]) -> str:
    inputs = ", ".join(
        f"%{name} : Float({', '.join('*' if d is None else str(d) for d in shape)})" for name, shape in INPUTS.items()
    )
    return f"graph({inputs}):\n" + "\n".join(statements) + f"\n  return ({', '.join(f'%{o}' for o in outputs)})\n"


def run(statements: list[str], feeds: dict[str, Array]) -> tuple[list[str], dict[str, Array]]:
    """The statements that run, and what all of them give: without those that fail and what needs these."""
    while True:
        made = [s.split()[0][1:] for s in statements]
        try:
            results = irc.compile(parse_graph(graph_text(statements, made)), "none").run(feeds)
            return statements, results | feeds
        except Error as error:
            lost = set(re.findall(r"'%(\w+)'", error.where)) & set(made)
            if not lost:
                raise
            statements = _without(statements, lost)


def _without(statements: list[str], lost: set[str]) -> list[str]:
    left: list[str] = []
    for statement in statements:
        made, *used = re.findall(r"%(\w+)", statement)
        if made in lost or not lost.isdisjoint(used):
            lost.add(made)
        else:
            left.append(statement)
    return left


def check(seed: int, least: int, nodes: int = 25) -> int:
    """Of how many sizes more is said than a number or a name."""
    sizes, given = feeds(seed, least)
    statements, arrays = run(Program(seed, nodes).statements, given)
    graph = parse_graph(graph_text(statements, [s.split()[0][1:] for s in statements]))
    inference = Inference(graph).run()
    told = 0
    for value in (value for node in graph.nodes for value in node.outputs):
        array = arrays[value.name]
        shape = inference.type_of(value).shape
        if shape is not None:
            assert tuple(worth(size, sizes, arrays) for size in shape) == array.shape, value
            told += sum(isinstance(size, Polynomial) for size in shape)
        contents = inference.contents.get(value)
        if contents is not None:
            assert contents.shape == array.shape
            for entry, number in zip(contents.flat, array.flat, strict=True):
                assert entry is None or worth(entry, sizes, arrays) == number, value
    optimised = irc.compile(graph, "default").run(given)
    for name in (v.name for v in graph.outputs):
        np.testing.assert_array_equal(optimised[name], arrays[name], strict=True)
    return told


@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize("seed", slow_if(range(40), range(10, 40)))
def test_sizes_are_what_is_said_of_them(seed: int, least: int) -> None:
    check(seed, least)


def test_much_is_said_of_sizes() -> None:
    assert sum(check(seed, least=1) for seed in range(8)) > 40
