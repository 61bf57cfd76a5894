"""Sessions that go back: what is used again, what is copied, and that nothing that anybody has changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irc
from irc.errors import Error
from irc.ir import parse_graph
from tests.effort import examples
from tests.graphs import ir, typed_ir

CACHE = typed_ir(
    "x: Float(1, s, 2); past_0: Float(1, p, 2); past_1: Float(1, 2); past_2: Float(q, 2)",
    "present_0 = Concat(past_0, x, axis=-2); present_2 = Concat(past_2, Reshape(x, [-1, 2]), axis=0); "
    "y = Add(past_1, ReduceSum(x, axes=[1], keepdims=0, since_version=11))",
    "y, present_0, present_2",
)

PAIRS = {"past_0": "present_0", "past_1": "y", "past_2": "present_2"}


def session_of(text: str = CACHE, passes: str = "default", **options: int) -> irc.Session:
    return irc.Session(irc.compile(parse_graph(text), passes), PAIRS, **options)


def rows(n: int, value: float = 1.0) -> np.ndarray:
    return np.full((1, n, 2), value, np.float32)


def positions(session: irc.Session) -> list[list[float]]:
    return [session.caches["past_0"][0, :, 0].tolist(), session.caches["past_2"][:, 0].tolist()]


def stepped(session: irc.Session, *values: float) -> irc.Session:
    for value in values:
        session.run({"x": rows(1, value)}, outputs=[])
    return session


@pytest.mark.parametrize("passes", ["default", "none"])
def test_what_somebody_shows_stays_as_it_is(passes):
    holders = {
        "an output": lambda session: session.run({"x": rows(0)})["present_0"],
        "a part of one": lambda session: session.run({"x": rows(0)})["present_0"][:, 3:],
        "caches": lambda session: session.caches["past_0"],
        "a buffer": lambda session: np.asarray(memoryview(session.caches["past_0"])),
        "a fork": lambda session: session.fork(),
    }
    for name, hold in holders.items():
        session = stepped(session_of(passes=passes, capacity=9), 1, 2, 3, 4, 5)
        held = hold(session)
        session.truncate(3)
        stepped(session, 6)
        shown = held.caches["past_0"] if isinstance(held, irc.Session) else held
        assert shown[0, -2:, 0].tolist() == [4, 5], name
        assert positions(session) == [[1, 2, 3, 6]] * 2


WINDOW = """
graph(%x : Float(1, 2), %past_0 : Float({size}, 2), %past_1 : Float(p, 2), %full : Bool()):
  %axis : Long(1) = prim::Constant[value=tensor([0])]()
  %one : Long(1) = prim::Constant[value=tensor([1])]()
  %end : Long(1) = prim::Constant[value=tensor([1000000])]()
  {kept}
  %present_0 : Float(*, 2) = onnx::Concat[axis=0](%kept, %x)
  %present_1 : Float(*, 2) = onnx::Concat[axis=0](%past_1, %x)
  return (%present_0, %present_1)
"""
CUT = "%kept : Float(*, 2) = onnx::Slice(%past_0, %one, %end, %axis)"
CUT_IN_A_BRANCH = """%kept : Float(*, 2) = prim::If(%full)
    block0():
      %cut : Float(*, 2) = onnx::Slice(%past_0, %one, %end, %axis)
      -> (%cut)
    block1():
      -> (%past_0)"""


@pytest.mark.parametrize("size", ["3", "w"])
@pytest.mark.parametrize("kept", [CUT, CUT_IN_A_BRANCH])
def test_windows_that_slide_stay(size, kept):
    model = irc.compile(parse_graph(WINDOW.format(size=size, kept=kept)))
    session = irc.Session(model, {"past_0": "present_0", "past_1": "present_1"})
    given = {"past_0": np.zeros((3, 2), np.float32), "past_1": np.zeros((0, 2), np.float32)}
    for value in (1, 2):
        session.run({"x": np.full((1, 2), value, np.float32), "full": np.array(True), **given})
        given = {}
    session.truncate(-1)
    assert session.caches["past_0"][:, 0].tolist() == [0, 1, 2]
    assert session.caches["past_1"][:, 0].tolist() == [1]
    session.run({"x": np.full((1, 2), 3, np.float32), "full": np.array(True)})
    assert session.caches["past_0"][:, 0].tolist() == [1, 2, 3]
    assert session.caches["past_1"][:, 0].tolist() == [1, 3]


@pytest.mark.parametrize("length", [6, -6, 1.5, "2", None, True])
def test_wrong_lengths(length):
    session = stepped(session_of(), 1, 2, 3, 4, 5)
    with pytest.raises(Error, match=r"^IRC419: "):
        session.truncate(length)
    assert positions(session) == [[1, 2, 3, 4, 5]] * 2


def test_nothing_to_truncate():
    with pytest.raises(Error, match="before the first step"):
        session_of().truncate(0)
    text = "graph(%x : Float(2), %h : Float(2)):\n  %y : Float(2) = onnx::Add(%x, %h)\n  return (%y)"
    session = irc.Session(irc.compile(parse_graph(text)), {"h": "y"})
    session.run({"x": np.ones(2, np.float32)})
    with pytest.raises(Error, match="none that the model appends to"):
        session.truncate(1)


BRANCHES = ir("""
    use: Bool(); n: Long(); x: Float(s, 2); past_0: Float(p, 2); past_1: Float(q, 2) -> present_0, present_1
    present_0: "Float(*, 2)" = prim.If(use)
    with block(): a: "Float(*, 2)" = Concat(past_0, x, axis=0); yield a
    with block(): yield x
    present_1: "Float(*, 2)" = Loop(n, use, past_1)
    with block(i=Long(), c=Bool(), carried="Float(*, 2)"): b: "Float(*, 2)" = Concat(carried, x, axis=0); yield use, b
""")


@pytest.mark.parametrize("dummy", [(0, 2), (1, 2)])
def test_what_branches_and_loops_append_to(dummy):
    session = irc.Session(irc.compile(parse_graph(BRANCHES)), capacity=50)
    x, given = np.ones((1, 2), np.float32), {"past_0": np.zeros(dummy, np.float32)}
    for use in (False, True, True):
        session.run({"use": np.array(use), "n": np.array(2), "x": x, **given}, outputs=[])
        assert session.counters.copies <= len(given) + 1
        if not given:
            assert session.counters.copies == 0
        given = {}
    session.truncate(2)
    assert [cache.shape[0] for cache in session.caches.values()] == [2, 2]
    session.run({"use": np.array(True), "n": np.array(2), "x": x}, outputs=[])
    assert session.counters.copies == 0
    assert [cache.shape[0] for cache in session.caches.values()] == [3, 4]


@examples(60)
@given(st.data())
def test_any_steps_forks_and_ways_back_are_as_if_everything_were_copied(data):
    capacity = data.draw(st.sampled_from([None, 4, 30]))
    leaves = [(session_of(capacity=capacity), [])]
    seen: list[tuple[np.ndarray, list[float]]] = []
    for step in range(data.draw(st.integers(1, 25))):
        at = data.draw(st.integers(0, len(leaves) - 1))
        session, values = leaves[at]
        match data.draw(st.sampled_from(["step", "step", "keep", "fork", "back", "forget"])):
            case "fork":
                leaves.append((session.fork(), values))
            case "back" if session.caches:
                length = data.draw(st.integers(0, len(values)))
                session.truncate(length)
                leaves[at] = session, values[:length]
            case "forget" if seen:
                seen.pop(data.draw(st.integers(0, len(seen) - 1)))
            case kind:
                n = data.draw(st.integers(0, 3))
                out = session.run({"x": rows(n, step)})["present_0"]
                leaves[at] = session, values + [float(step)] * n
                if kind == "keep":
                    seen.append((out, leaves[at][1]))
                del out
        for session, values in leaves:
            if session.caches:
                assert positions(session) == [values] * 2
    for array, values in seen:
        np.testing.assert_array_equal(array[0, :, 0], values)
