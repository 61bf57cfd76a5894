"""Steps of sessions with growing caches: their memory is planned, and a backend compiles them, whatever may happen."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irc
from irc.ir import Array, parse_graph
from irc.runtime.arena import GrowingKeys, run_key
from irc.runtime.backends import find_backend
from irc.runtime.limits import Limits
from irc.runtime.model import CompiledModel
from tests.effort import examples
from tests.graphs import ir, typed_ir

HEADS, WIDTH = 2, 16
WHOLE = HEADS * WIDTH

DECODER = ir("""
    x: Float(1, seq, 32); w: Float(32, 32); past_k, past_v: Float(1, 2, past, 16) -> y, present_k, present_v
    split: Long(4) = prim.Constant(value=tensor([0, 0, 2, 16]))
    q: "Float(*, *, *)" = MatMul(x, w, since_version=13)
    q_apart: "Float(*, *, *, *)" = Reshape(q, split, since_version=19)
    q_heads: "Float(*, *, *, *)" = Transpose(q_apart, perm=[0, 2, 1, 3])
    k: "Float(*, *, *)" = Add(q, x, since_version=14)
    k_apart: "Float(*, *, *, *)" = Reshape(k, split, since_version=19)
    k_heads: "Float(*, *, *, *)" = Transpose(k_apart, perm=[0, 2, 1, 3])
    v: "Float(*, *, *)" = Mul(q, x, since_version=14)
    v_apart: "Float(*, *, *, *)" = Reshape(v, split, since_version=19)
    v_heads: "Float(*, *, *, *)" = Transpose(v_apart, perm=[0, 2, 1, 3])
    present_k: "Float(1, 2, *, 16)" = Concat(past_k, k_heads, axis=2)
    present_v: "Float(1, 2, *, 16)" = Concat(past_v, v_heads, axis=2)
    mixed: "Float(*, *, *, *)" = irc.attention(q_heads, present_k, present_v, scale=0.5)
    mixed_apart: "Float(*, *, *, *)" = Transpose(mixed, perm=[0, 2, 1, 3])
    together: "Float(*, *, *)" = Reshape(mixed_apart, [0, 0, 32], since_version=19)
    y: "Float(1, *, 32)" = Sub(together, x, since_version=14)
""")

RNG = np.random.default_rng(4)
WEIGHTS = RNG.standard_normal((WHOLE, WHOLE), np.float32) / 8


def session(backend: str = "auto", text: str = DECODER, capacity: int | None = None) -> irc.Session:
    return irc.Session(irc.compile(parse_graph(text), backend=backend), capacity=capacity)


def token(number: int, count: int = 1) -> dict[str, Array]:
    return {"x": np.random.default_rng(number).standard_normal((1, count, WHOLE), np.float32), "w": WEIGHTS}


class Reference:
    """The same decoder without a session, plans or compiled steps: caches are given back as arrays."""

    def __init__(self, text: str = DECODER) -> None:
        self._model = irc.compile(parse_graph(text), passes="none", backend="numpy")
        self.past = {f"past_{each}": np.empty((1, HEADS, 0, WIDTH), np.float32) for each in "kv"}

    def run(self, feeds: dict[str, Any]) -> Array:
        found = self._model.run({**self.past, **feeds})
        self.past = {f"past_{each}": found[f"present_{each}"] for each in "kv"}
        return found["y"]


def check(made: irc.Session, reference: Reference, feeds: dict[str, Any]) -> None:
    np.testing.assert_allclose(made.run(feeds)["y"], reference.run(feeds), rtol=1e-5, atol=1e-6)
    for name, array in reference.past.items():
        np.testing.assert_allclose(made.caches[name], array, rtol=1e-5, atol=1e-6)


def tables(backend: str = "auto") -> int:
    """How many compiled steps a step has at the end: one, where there is native code."""
    return int(find_backend(backend) is not None)


def test_first_and_later_steps_have_equal_bits() -> None:
    fresh, usual = session(), session()
    for number in range(12):
        usual.run(token(number))
    caches = {name: array.copy() for name, array in usual.caches.items()}
    first, later = fresh.run({**token(99), **caches}), usual.run(token(99))
    for name, array in later.items():
        np.testing.assert_array_equal(first[name], array)


UNNAMED = DECODER.replace("past,", "*,")


def test_keys_that_are_not_as_many_as_values_are_refused_by_the_table_too() -> None:
    made, reference = session(text=UNNAMED), Reference(UNNAMED)
    for number in range(8):
        check(made, reference, token(number))
    shorter = {"past_v": made.caches["past_v"][:, :, :-1].copy()}
    with pytest.raises(irc.Error, match=r"IRC421.*keys"):
        made.run({**token(9), **shorter})
    check(made, reference, token(9))


@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_a_followed_or_limited_step(backend: str) -> None:
    made, reference = session(backend), Reference()
    for number in range(6):
        check(made, reference, token(number))
    found = made.run(token(7), limits=Limits(steps=1000, bytes=1 << 20))["y"]
    np.testing.assert_allclose(found, reference.run(token(7)), rtol=1e-5, atol=1e-6)
    with pytest.raises(irc.Error, match="IRC441"):
        made.run(token(8), limits=Limits(steps=3))
    for number in range(8, 12):
        check(made, reference, token(number))
    assert made.counters.planned > 0


SHARED = """
graph(%x : Float(1, heads, 1, 32), %past_k : Float(1, 2, past, 32), %past_v : Float(1, 2, past, 32), MASK):
  %q : Float(1, 4, 1, 32) = onnx::Neg(%x)
  %first : Long(1) = prim::Constant[value=tensor([0])]()
  %two : Long(1) = prim::Constant[value=tensor([2])]()
  %axis : Long(1) = prim::Constant[value=tensor([1])]()
  %some : Float(1, 2, 1, 32) = onnx::Slice(%q, %first, %two, %axis)
  %k : Float(1, 2, 1, 32) = onnx::Exp(%some)
  %v : Float(1, 2, 1, 32) = onnx::Abs(%some)
  %present_k : Float(1, 2, *, 32) = onnx::Concat[axis=2](%past_k, %k)
  %present_v : Float(1, 2, *, 32) = onnx::Concat[axis=2](%past_v, %v)
  %none : NoneType = prim::Constant()
  %mixed : Float(1, 4, 1, 32) = irc::attention[grouped=1](%q, %present_k, %present_v, OPERANDS)
  %abs : Float(1, 4, 1, 32) = onnx::Abs(%mixed)
  %y : Float(1, 4, 1, 32) = onnx::Sqrt(%abs)
  return (%y, %present_k, %present_v)
"""


@pytest.mark.parametrize(
    ("mask", "operands"),
    [
        ("%bias : Float(1, 1, 1, all)", "%bias"),
        ("%mask : Bool(1, all)", "%none, %mask"),
        ("%bias : Float(1, 1, 1, all), %mask : Bool(all)", "%bias, %mask"),
    ],
)
def test_heads_that_share_keys_and_masks_that_grow(mask: str, operands: str) -> None:
    text = SHARED.replace("MASK", mask).replace("OPERANDS", operands)
    made, plain = session(text=text), irc.compile(parse_graph(text), passes="none", backend="numpy")
    past = {"past_k": np.empty((1, 2, 0, 32), np.float32), "past_v": np.empty((1, 2, 0, 32), np.float32)}
    for number in range(1, 14):
        feeds: dict[str, Any] = {"x": RNG.standard_normal((1, 4, 1, 32), np.float32)}
        for each in plain.inputs[3:]:
            sizes = [number if dim == "all" else 1 for dim in each.shape or ()]
            numbers = RNG.standard_normal(sizes, np.float32)
            feeds[each.name] = numbers > -1 if each.name == "mask" else numbers
        wanted = plain.run({**feeds, **past})
        past = {name: wanted[name.replace("past", "present")] for name in past}
        np.testing.assert_allclose(made.run(feeds)["y"], wanted["y"], rtol=1e-4, atol=1e-5)
    assert made.counters.planned > 0
    assert made.counters.compiled == tables()


HEADS_OF_4 = """
graph(%x : Float(1, 4, 1, 32), %past_k : Float(1, 4, past, 32), %past_v : Float(1, 4, past, 32)MORE):
  %q : Float(1, 4, 1, 32) = onnx::Neg(%x)
  %k : Float(1, 4, 1, 32) = onnx::Exp(%q)
  %v : Float(1, 4, 1, 32) = onnx::Abs(%q)
  %present_k : Float(1, 4, *, 32) = onnx::Concat[axis=2](%past_k, %k)
  %present_v : Float(1, 4, *, 32) = onnx::Concat[axis=2](%past_v, %v)
  %seen_k : Float(1, 4, *, 32) = onnx::Neg(%present_k)
  %mixed : Float(1, 4, 1, 32) = irc::attention(%q, OPERANDS)
  %abs : Float(1, 4, 1, 32) = onnx::Abs(%mixed)
  %y : Float(1, 4, 1, 32) = onnx::Sqrt(%abs)
  return (%y, %present_k, %present_v)
"""

PAIR = ir("""
    x: Float(1, 2); past_0: Float(past, 2) -> y, present_0
    p: "Float(*, 2)" = neg_(past_0); present_0: "Float(*, 2)" = irc.append_(past_0, x, axis=0)
    a: Float(1, 2) = Exp(x); y: Float(1, 2) = Neg(a)
""")

CARRIED = ir("""
    x: Float(1, 2); c: Bool(); past_0: Float(past, 2) -> z, rows, present_0
    k: Long() = prim.Constant(value=tensor([3])); a: Float(1, 2) = Exp(x); n: Float(1, 2) = Neg(a)
    q["Float(*, 2)"], rows["Float(*, 1, 2)"] = Loop(k, c, past_0)
    with block(i=Long(), g=Bool(), s="Float(*, 2)"): yield g, s, x
    present_0: "Float(*, 2)" = Concat(past_0, n, axis=0); y: Float(1, 2) = ReduceSum(q, axes=[0], since_version=11)
    z: Float(1, 2) = Neg(y)
""")

TURNED = ir("""
    x: Float(1, 3); past_0: Float(past, 3); other: Float(all, 3) -> z, present_0
    q = t_(other); s: "Float(*)" = ReduceSum(other, axes=[0], keepdims=0, since_version=11); m: "Float(*)" = Neg(s)
    z: "Float(*)" = Exp(m); present_0: "Float(*, 3)" = Concat(past_0, x, axis=0)
""")


def attending(operands: str, more: str = "") -> str:
    return HEADS_OF_4.replace("OPERANDS", operands).replace("MORE", more and f", {more}")


@pytest.mark.parametrize("passes", ["default", "none"])
@pytest.mark.parametrize(
    "text",
    [
        attending("%seen_k, %present_v"),
        attending("%past_k, %past_v"),
        *[attending("%present_k, %present_v, %b", f"%b : Float({sizes})") for sizes in ("1", "", "1, 4, 1, 1")],
        attending("%present_k, %present_v, %b", "%b : Float(1, 1, 1, all)"),
        PAIR,
        CARRIED,
        TURNED,
    ],
    ids="changed-keys keys-before-append one-bias a-number heads-biases a-row written carried turned".split(),
)
def test_what_may_be_around_caches(text: str, passes: str) -> None:
    """Whatever is asked of caches and of what they are beside, steps compute what they do without a session."""
    made = irc.Session(irc.compile(parse_graph(text), passes=passes))
    plain = irc.compile(parse_graph(text), passes="none", backend="numpy")
    past = {
        name: np.ones([d if isinstance(d, int) else 2 for d in plain_shape(plain, name)], "f4") for name in made.pairs
    }
    for number in range(3, 14):
        feeds: dict[str, Any] = {}
        for each in plain.inputs:
            if each.name not in made.pairs:
                sizes = [number if dim == "all" else dim for dim in each.shape or ()]
                drawn = RNG.standard_normal(sizes).astype(np.float32)
                feeds[each.name] = np.array(True) if each.dtype == np.bool_ else drawn
        wanted = plain.run({**feeds, **{name: array.copy() for name, array in past.items()}})
        found = made.run({**feeds, **past} if number == 3 else feeds)
        past = {name: wanted[output] for name, output in made.pairs.items()}
        for name, array in wanted.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5)


def plain_shape(model: CompiledModel, name: str) -> tuple[Any, ...]:
    return next(each.shape or () for each in model.inputs if each.name == name)


FAILING = typed_ir("""
    x: Float(1, 4); i: Long(1); past_0: Float(past, 4); w: Float(8, 4) -> y, present_0
    r = Gather(w, i); n = Add(r, x, since_version=14); present_0 = Concat(past_0, n, axis=0)
    s = ReduceSum(present_0, axes=[0], since_version=11); y = Neg(s)
""")


@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_a_step_that_fails_leaves_the_reserve(backend: str) -> None:
    made = session(backend, FAILING, capacity=1000)

    def feeds(i: int) -> dict[str, Array]:
        return {"x": np.ones((1, 4), np.float32), "i": np.array([i]), "w": np.ones((8, 4), np.float32)}

    for number in range(8):
        made.run(feeds(number))
    with pytest.raises(irc.Error, match="IRC4"):
        made.run(feeds(99))
    made.run(feeds(1))
    assert made.counters.copies == 0
    assert made.caches["past_0"].shape == (9, 4)


# -- keys -------------------------------------------------------------------------


def test_steps_of_other_ranks_or_element_types_have_no_key_in_common() -> None:
    keys = GrowingKeys()
    others = run_key([np.empty(3, np.float32)], ()), run_key([np.empty((3, 1), np.float32)], ())
    assert [keys.key(key) for key in (*others, run_key([np.empty(4, np.int32)], ()))] == [None] * 3


@examples(40)
@given(st.lists(st.tuples(st.sampled_from("stfcrl"), st.integers(1, 3)), min_size=4, max_size=30))
def test_whatever_is_done_steps_compute_what_they_do_without_a_session(turns: list[tuple[str, int]]) -> None:
    """Steps, truncations, forks, caches that are given, resets, and limits, in any order."""
    made, reference = session(), Reference()
    for number, (what, count) in enumerate(turns):
        length = reference.past["past_k"].shape[2]
        if what == "t" and length > count:
            made.truncate(length - count)
            reference.past = {name: array[:, :, : length - count] for name, array in reference.past.items()}
        elif what == "f":
            fork = made.fork()
            made.run(token(1000 + number))
            made = fork
        elif what == "c" and length:
            made.run({**token(2000 + number), **{n: array[:, :, :1].copy() for n, array in made.caches.items()}})
            reference.past = {n: array[:, :, :1] for n, array in reference.past.items()}
            reference.run(token(2000 + number))
        elif what == "r":
            made.reset()
            reference.past = Reference().past
        elif what == "l":
            with pytest.raises(irc.Error, match="IRC441"):
                made.run(token(number), limits=Limits(steps=2))
        check(made, reference, token(number, count if what == "s" and count > 2 else 1))
