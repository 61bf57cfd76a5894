"""Sessions whose caches have a fixed size: a step writes its elements into them, unless somebody else shows them."""

from __future__ import annotations

from copy import copy
from threading import Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irc
from irc.errors import Error
from irc.ir import parse_graph

SIZE = 6

SCATTERS = {
    "TensorScatter": """
graph(%x : Float(1, n, 2), %at : Long(1), %past_0 : Float(1, 6, 2)):
  %present_0 : Float(1, 6, 2) = onnx::TensorScatter[axis=1](%past_0, %x, %at)
  %axes : Long(1) = prim::Constant[value=tensor([1])]()
  %y : Float(1, 1, 2) = onnx::ReduceSum(%present_0, %axes)
  return (%y, %present_0)
""",
    "ScatterND": """
graph(%x : Float(n, 2), %at : Long(n, 1), %past_0 : Float(6, 2)):
  %present_0 : Float(6, 2) = onnx::ScatterND(%past_0, %at, %x)
  %axes : Long(1) = prim::Constant[value=tensor([0])]()
  %y : Float(1, 2) = onnx::ReduceSum(%present_0, %axes)
  return (%y, %present_0)
""",
    "twice": """
graph(%x : Float(n, 2), %at : Long(n, 1), %past_0 : Float(6, 2)):
  %first : Float(6, 2) = onnx::ScatterND[reduction="add"](%past_0, %at, %x)
  %present_0 : Float(6, 2) = onnx::ScatterND(%first, %at, %x)
  %axes : Long(1) = prim::Constant[value=tensor([0])]()
  %y : Float(1, 2) = onnx::ReduceSum(%present_0, %axes)
  return (%y, %present_0)
""",
    "branches": """
graph(%x : Float(n, 2), %at : Long(n, 1), %past_0 : Float(6, 2)):
  %rows : Long(1) = onnx::Shape[end=1](%x)
  %one : Long(1) = prim::Constant[value=tensor([1])]()
  %many : Bool(1) = onnx::Greater(%rows, %one)
  %present_0 : Float(6, 2) = prim::If(%many)
    block0():
      %a : Float(6, 2) = onnx::ScatterND(%past_0, %at, %x)
      -> (%a)
    block1():
      %b : Float(6, 2) = onnx::ScatterND(%past_0, %at, %x)
      -> (%b)
  %axes : Long(1) = prim::Constant[value=tensor([0])]()
  %y : Float(1, 2) = onnx::ReduceSum(%present_0, %axes)
  return (%y, %present_0)
""",
    "index_copy_": """
graph(%x : Float(n, 2), %at : Long(n), %past_0 : Float(6, 2)):
  %axis : int = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %present_0 : Float(6, 2) = aten::index_copy_(%past_0, %axis, %at, %x)
  %y : Float() = aten::sum(%present_0, %none)
  return (%y, %present_0)
""",
}

SUM = """
graph(%x : Float(2, 2), %past_0 : Float(2, 2)):
  %at : Long(1, 1) = prim::Constant[value=tensor([0])]()
  %row : Float(1, 2) = prim::Constant[value=tensor([7.0, 8.0])]()
  %y : Float(2, 2) = onnx::Add(%x, %past_0)
  %present_0 : Float(2, 2) = onnx::ScatterND(%y, %at, %row)
  return (%y, %present_0)
"""


def compiled(kind: str = "ScatterND", passes: str = "default") -> irc.CompiledModel:
    return irc.compile(parse_graph(SCATTERS[kind]), passes)


def feeds(model: irc.CompiledModel, at: int, rows: int, value: float) -> dict[str, np.ndarray]:
    """A step that writes ``rows`` positions from ``at`` on."""
    sizes = {a.name: len(a.shape or ()) for a in model.inputs}
    x = np.full((rows, 2), value, np.float32)
    places = np.arange(at, at + rows)
    if sizes["x"] == 3:
        return {"x": x[None], "at": np.array([at])}
    return {"x": x, "at": places[:, None] if sizes["at"] == 2 else places}


def address(session: irc.Session) -> int:
    return session.caches["past_0"].ctypes.data


@pytest.mark.parametrize("passes", ["default", "none"])
@pytest.mark.parametrize("kind", SCATTERS)
def test_steps_write_where_the_cache_is(kind, passes):
    model = compiled(kind, passes)
    session, reference = irc.Session(model), compiled(kind, "none")
    past, where = np.zeros_like(session.run(feeds(model, 0, 1, 0.0))["present_0"]), []
    session.reset()
    for at, rows, value in [(0, 3, 1.0), (3, 1, 2.0), (4, 1, 3.0), (4, 2, 4.0)]:
        given = feeds(model, at, rows, value)
        expected = reference.run({**given, "past_0": past})
        past = expected["present_0"]
        found = session.run(given, outputs=["y"])
        np.testing.assert_array_equal(found["y"], expected["y"])
        np.testing.assert_array_equal(session.caches["past_0"], past)
        assert session.counters.copies == 0
        where.append(address(session))
    assert len(set(where)) == 1


@pytest.mark.parametrize("kind", SCATTERS)
def test_what_somebody_shows_stays_as_it_is(kind):
    holders = {
        "an output": lambda session, step: session.run(step)["present_0"],
        "a part of one": lambda session, step: session.run(step)["present_0"][..., 0:1],
        "caches": lambda session, step: (session.run(step, outputs=[]), session.caches["past_0"])[1],
        "a buffer": lambda session, step: np.asarray(memoryview(session.run(step)["present_0"])),
        "a fork": lambda session, step: (session.run(step, outputs=[]), session.fork())[1],
        "a copy": lambda session, step: (session.run(step, outputs=[]), copy(session))[1],
    }
    model = compiled(kind)
    for name, hold in holders.items():
        session = irc.Session(model)
        held = hold(session, feeds(model, 0, 3, 1.0))
        before = np.array(held.caches["past_0"] if isinstance(held, irc.Session) else held)
        session.run(feeds(model, 0, 3, 2.0), outputs=[])
        np.testing.assert_array_equal(held.caches["past_0"] if isinstance(held, irc.Session) else held, before, name)
        assert session.caches["past_0"].sum() != before.sum()
        del held
        where = address(session)
        session.run(feeds(model, 2, 2, 5.0), outputs=[])
        assert address(session) == where, name


def test_what_the_caller_gave_is_not_written_to():
    model = compiled()
    session, own = irc.Session(model), np.ones((SIZE, 2), np.float32)
    session.run({**feeds(model, 0, 2, 3.0), "past_0": own})
    session.run(feeds(model, 2, 2, 4.0))
    assert (own == 1).all() and not session.run(feeds(model, 2, 2, 4.0))["present_0"].flags.writeable


def test_another_output_is_what_it_was():
    session = irc.Session(irc.compile(parse_graph(SUM)))
    ones = np.ones((2, 2), np.float32)
    kept = [session.run({"x": ones}, outputs=["y"])["y"] for _ in range(3)]
    assert [y.tolist() for y in kept] == [[[1, 1], [1, 1]], [[8, 9], [2, 2]], [[8, 9], [3, 3]]]


# -- what goes wrong ----------------------------------------------------------


def failing(session: irc.Session, model: irc.CompiledModel) -> None:
    """A step that fails after it has begun: there is no such place."""
    with pytest.raises(Error) as caught:
        session.run(feeds(model, SIZE, 1, 9.0), outputs=[])
    assert caught.value.code == "IRC423"


@pytest.mark.parametrize(
    "use",
    [
        lambda s, m: s.run(feeds(m, 0, 1, 1.0)),
        lambda s, m: s.fork(),
        lambda s, m: s.caches,
        lambda s, m: s.truncate(0),
    ],
)
def test_a_step_that_fails_leaves_no_caches_that_it_may_have_written_to(use):
    model = compiled()
    session = irc.Session(model)
    session.run(feeds(model, 0, 2, 1.0), outputs=[])
    failing(session, model)
    with pytest.raises(Error, match="failed while it wrote to 'past_0'") as caught:
        use(session, model)
    assert caught.value.code == "IRC437"


def test_after_a_failure_sessions_are_reset_or_given_caches_or_go_on_from_a_fork():
    model = compiled()
    session = irc.Session(model)
    session.run(feeds(model, 0, 2, 1.0), outputs=[])
    fork = session.fork()
    session.run(feeds(model, 0, 1, 5.0), outputs=[])
    failing(session, model)
    np.testing.assert_array_equal(fork.run(feeds(model, 2, 1, 2.0))["y"], [[4, 4]])
    mine = np.full((SIZE, 2), 2, np.float32)
    np.testing.assert_array_equal(session.run({**feeds(model, 0, 1, 1.0), "past_0": mine})["y"], [[11, 11]])
    np.testing.assert_array_equal(session.run(feeds(model, 0, 1, 0.0))["y"], [[10, 10]])
    session.run(feeds(model, 0, 1, 0.0), outputs=[])
    failing(session, model)
    session.reset()
    np.testing.assert_array_equal(session.run(feeds(model, 0, 1, 1.0))["y"], [[1, 1]])


def test_a_first_step_that_fails_may_be_made_again():
    model = compiled()
    session = irc.Session(model)
    failing(session, model)
    np.testing.assert_array_equal(session.run(feeds(model, 0, 1, 1.0))["y"], [[1, 1]])


def test_a_step_that_is_refused_leaves_the_caches():
    model = compiled()
    session = irc.Session(model)
    session.run(feeds(model, 0, 2, 1.0), outputs=[])
    for wrong in ({}, {"x": 1, "at": 2, "z": 3}, {**feeds(model, 0, 1, 1.0), "x": np.ones((1, 2))}):
        with pytest.raises(Error):
            session.run(wrong)
    np.testing.assert_array_equal(session.run(feeds(model, 2, 1, 1.0))["y"], [[3, 3]])


class Lazy:
    shape = (1, 2)

    def __init__(self, action):
        self.action = action

    def __array__(self, dtype=None, copy=None):
        self.action()
        return np.ones((1, 2), np.float32)


def test_caches_that_are_lent_are_not_shown():
    model = compiled()
    session = irc.Session(model)
    session.run(feeds(model, 0, 2, 1.0), outputs=[])
    for action in (session.fork, lambda: session.caches):
        with pytest.raises(Error) as caught:
            session.run({**feeds(model, 0, 1, 1.0), "x": Lazy(action)})
        assert caught.value.code == "IRC436"
    found = []
    other = Thread(target=lambda: found.append(session.caches["past_0"]))
    session.run({**feeds(model, 2, 1, 1.0), "x": Lazy(other.start)})
    other.join()
    assert found[0].sum() in (4, 6)  # as before or as after


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(SCATTERS)),
    st.lists(
        st.tuples(
            st.sampled_from(["step", "step", "step", "fork", "hold", "drop", "fail"]),
            st.integers(0, SIZE - 2),
            st.integers(1, 2),
            st.integers(0, 9),
        ),
        max_size=14,
    ),
)
def test_any_sequence_of_steps_gives_what_copies_give(kind, actions):
    model = compiled(kind)
    start = np.zeros_like(irc.Session(model).run(feeds(model, 0, 1, 0.0))["present_0"])
    sessions = [(irc.Session(model), start)]
    held: list[tuple[np.ndarray, np.ndarray]] = []
    for action, at, rows, value in actions:
        session, past = sessions[value % len(sessions)]
        step = feeds(model, at, rows, float(value))
        if action == "fork":
            sessions.append((session.fork(), past))
        elif action == "drop":
            held.clear()
        elif action == "fail":
            with pytest.raises(Error):
                session.run(feeds(model, SIZE, 1, 1.0))
            session.reset()
            sessions[value % len(sessions)] = session, start
        else:
            expected = model.run({**step, "past_0": past})
            found = session.run(step, outputs=["y"] if action == "step" else None)
            np.testing.assert_array_equal(found["y"], expected["y"])
            if action == "hold":
                held.append((found["present_0"], found["present_0"].copy()))
            sessions[value % len(sessions)] = session, expected["present_0"]
        for shown, copied in held:
            np.testing.assert_array_equal(shown, copied)
        for other, known in sessions:
            if other.caches:
                np.testing.assert_array_equal(other.caches["past_0"], known)
