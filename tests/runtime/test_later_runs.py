"""First and later runs give the same bits, however inputs lie, and leave alone what earlier runs gave."""

from random import Random
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import irc
from irc.ir import parse_graph
from irc.runtime.model import CompiledModel
from tests.effort import Tune, examples
from tests.graphs import ir

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)

CHAIN = ir("""
    x, c: Float(3, 4); r: Float(4); s: Float() -> y
    a: Float(3, 4) = Add(x, c); b: Float(3, 4) = Relu(a); d: Float(3, 4) = Sub(r, b); e: Float(3, 4) = Sigmoid(d)
    f: Float(3, 4) = Max(e, c, s); g: Float(3, 4) = Pow(f, s); h: Float(3, 4) = Clip(g, s); y: Float(3, 4) = Neg(h)
""")


def fed(**arrays: Any) -> dict[str, Array]:
    return {name: np.asarray(x, np.float32) for name, x in arrays.items()}


def feeds() -> dict[str, Array]:
    return fed(x=RNG.standard_normal((3, 4)), c=RNG.standard_normal((3, 4)), r=RNG.standard_normal(4), s=0.25)


def by_hand(x: Array, c: Array, r: Array, s: Array) -> Array:
    e = 1 / (1 + np.exp(-(r - np.maximum(x + c, 0))))
    return -np.maximum(np.maximum(np.maximum(e, c), s) ** s, s)


def _laid(x: Array, layout: str) -> Array:
    if layout == "transposed":
        return np.asfortranarray(x)
    if layout == "repeated":
        return np.broadcast_to(x[:1], x.shape)
    if layout == "backwards":
        return x[::-1, ::-1]
    x.flags.writeable = False
    return x


def test_halves_are_computed_by_kernels(tune: Tune) -> None:
    """NumPy's own functions take many times as long for large ones."""
    tune("irc.runtime.kernels.numerics.MANY", 1)
    text = CHAIN.replace("Float", "Half")
    model = CompiledModel(parse_graph(text))
    for _ in range(3):
        given_ = {name: x.astype(np.float16) for name, x in feeds().items()}
        wide = {name: x.astype(np.float32) for name, x in given_.items()}
        np.testing.assert_allclose(model.run(given_)["y"], by_hand(**wide), rtol=0.02, atol=0.02)


def test_profiles_tell_what_is_written_over() -> None:
    model = CompiledModel(parse_graph(CHAIN))
    for _ in range(2):
        model.run(feeds())
    profile = model.profile(feeds())
    rows = {row.label: (row.in_place, row.fresh) for row in profile.by_node()}
    assert list(rows.values()).count((1, 0)) == 6 and list(rows.values()).count((0, 1)) == 2
    assert profile.counters.in_place == 6
    assert profile.least == 2 * 3 * 4 * 4


def test_limits_change_nothing() -> None:
    model = CompiledModel(parse_graph(CHAIN))
    for _ in range(3):
        given_ = feeds()
        for more in ({"limits": irc.Limits(bytes=1 << 20)}, {}):
            np.testing.assert_allclose(model.run(given_, **more)["y"], by_hand(**given_), rtol=1e-5, atol=1e-6)


class _Writer:
    """Writes a graph of pointwise operators, views, products and branches."""

    UNARY = ("Relu", "Neg", "Exp", "Sigmoid", "Tanh", "Abs", "LeakyRelu", "Identity", "Softmax")
    BINARY = ("Add", "Sub", "Mul", "Max", "Min")
    INPUTS = "%x : Float(3, 4), %z : Float(3, 4), %w : Float(4, 4), %t : Float(4, 3), %c : Float(), %go : Bool()"

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.shapes: dict[str, tuple[int, ...]] = {"x": (3, 4), "z": (3, 4), "t": (4, 3)}
        self.lines: list[str] = []
        for _ in range(self.random.randint(3, 14)):
            self.operator(branches=True)
        made = [name for name in self.shapes if name.startswith("v")]
        self.outputs = sorted({made[-1], *self.random.choices(made, k=2)})
        returned = ", ".join(f"%{name}" for name in self.outputs)
        self.text = f"graph({self.INPUTS}):\n{chr(10).join(self.lines)}\nreturn ({returned})\n"

    def some(self, shape: tuple[int, ...]) -> str:
        """A value of ``shape``, more often the latest."""
        fitting = [name for name, found in self.shapes.items() if found == shape]
        return fitting[-1] if self.random.random() < 0.6 else self.random.choice(fitting)

    def add(self, kind: str, *operands: str, shape: tuple[int, ...]) -> None:
        name = f"v{sum(line.startswith('%v') for line in self.lines)}"
        self.lines.append(f"%{name} : Tensor = {kind}({', '.join(f'%{o}' for o in operands)})")
        self.shapes[name] = shape

    def operator(self, branches: bool) -> None:
        random = self.random
        shape = random.choice([(3, 4), (3, 4), (4, 3)])
        first = self.some(shape)
        what = random.random()
        if what < 0.4:
            self.add(f"onnx::{random.choice(self.UNARY)}", first, shape=shape)
        elif what < 0.75:
            operands = [first, self.some(shape) if random.random() < 0.8 else "c"]
            random.shuffle(operands)
            self.add(f"onnx::{random.choice(self.BINARY)}", *operands, shape=shape)
        elif what < 0.85:
            self.add("onnx::Transpose[perm=[1, 0]]", first, shape=shape[::-1])
        elif what < 0.92 or not branches:
            self.add("onnx::MatMul", self.some((3, 4)), "w", shape=(3, 4))
        else:
            self.branches(shape)

    def branches(self, shape: tuple[int, ...]) -> None:
        outer = dict(self.shapes)
        place = len(self.lines)
        for number in range(2):
            self.lines.append(f"block{number}():")
            self.shapes = dict(outer)
            for _ in range(self.random.randint(0, 3)):
                self.operator(branches=False)
            self.lines.append(f"-> (%{self.some(shape)})")
        self.shapes = outer
        name = f"v{sum(line.startswith('%v') for line in self.lines)}"
        self.lines.insert(place, f"%{name} : Tensor = prim::If(%go)")
        self.shapes[name] = shape


@examples(60)
@given(st.integers(0, 1 << 30), st.sampled_from(["none", "default"]))
def test_random_graphs(seed: int, passes: str) -> None:
    """Planned runs give the bits of first runs, on inputs that lie differently in each; what they gave before stays."""
    written = _Writer(seed)
    model = irc.compile(parse_graph(written.text), passes)
    names = {argument.name for argument in model.inputs}
    before: list[tuple[dict[str, Array], dict[str, Array]]] = []
    for number in range(4):
        rng = np.random.default_rng(seed + number)
        numbers = {"x": (3, 4), "z": (3, 4), "w": (4, 4), "t": (4, 3), "c": ()}
        inputs: dict[str, Array] = {n: rng.integers(-2, 3, s).astype(np.float32) for n, s in numbers.items()}
        layout = written.random.choice(["read-only", "transposed", "repeated", "backwards"])
        given_ = {n: _laid(x, layout) if n in "xt" else x for n, x in inputs.items()}
        given_["go"] = np.array(bool(rng.integers(2)))
        given_ = {n: x for n, x in given_.items() if n in names}
        kept = {n: np.array(x, order="C") for n, x in given_.items()}
        alone = irc.compile(parse_graph(written.text), passes).run({n: x.copy("K") for n, x in given_.items()})
        before.append((model.run(given_), alone))
        for name, x in kept.items():
            np.testing.assert_array_equal(given_[name], x)
    for found, alone in before:
        for name in written.outputs:
            assert found[name].tobytes() == alone[name].tobytes()
