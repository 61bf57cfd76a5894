"""Sessions whose caches have a fixed size: a step writes its elements into them, unless somebody else shows them."""

from copy import copy
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irc
from irc.errors import Error
from irc.frontend.torchscript import import_torchscript
from irc.ir import parse_graph
from tests.effort import examples
from tests.graphs import ir, typed_ir
from tests.runtime.helpers import interrupted

SIZE, WIDTH = 6, 1024  # larger than what is copied rather than lent

SCATTERS = {
    "TensorScatter": typed_ir(
        "x: Float(1, n, 1024); at: Long(1); past_0: Float(1, 6, 1024)",
        "present_0 = TensorScatter(past_0, x, at, axis=1); y = ReduceSum(present_0, [1])",
        "y, present_0",
    ),
    "ScatterND": typed_ir(
        "x: Float(n, 1024); at: Long(n, 1); past_0: Float(6, 1024)",
        "present_0 = ScatterND(past_0, at, x); y = ReduceSum(present_0, [0])",
        "y, present_0",
    ),
    "twice": typed_ir(
        "x: Float(n, 1024); at: Long(n, 1); past_0: Float(6, 1024)",
        "present_0 = ScatterND(ScatterND(past_0, at, x, reduction='add'), at, x); y = ReduceSum(present_0, [0])",
        "y, present_0",
    ),
    "branches": ir("""
        x: Float(n, 1024); at: Long(n, 1); past_0: Float(6, 1024) -> y, present_0
        rows: Long(1) = Shape(x, end=1); many: Bool(1) = Greater(rows, [1]); present_0: Float(6, 1024) = prim.If(many)
        with block(): a: Float(6, 1024) = ScatterND(past_0, at, x); yield a
        with block(): b: Float(6, 1024) = ScatterND(past_0, at, x); yield b
        axes: Long(1) = prim.Constant(value=tensor([0])); y: Float(1, 1024) = ReduceSum(present_0, axes)
    """),
    "transposed": typed_ir(
        "x: Float(n, 1024); at: Long(n, 1); past_0: Float(1024, 6)",
        "rows = Transpose(past_0, perm=[1, 0]); all = ScatterND(rows, at, x); "
        "present_0 = Transpose(all, perm=[1, 0]); y = ReduceSum(present_0, [1])",
        "y, present_0",
    ),
    "reshaped": typed_ir(
        "x: Float(n, 1024); at: Long(n, 1); past_0: Float(2, 3, 1024)",
        "rows = Reshape(past_0, [6, 1024]); all = ScatterND(rows, at, x); "
        "present_0 = Reshape(all, [2, 3, 1024]); y = ReduceSum(present_0, [1])",
        "y, present_0",
    ),
    "loop": typed_ir("""
        x: Float(n, 1024); at: Long(n, 1); past_0: Float(6, 1024) -> y, present_0
        present_0 = Loop(2, True, past_0)
        with block(i=Long(), go=Bool(), cache=Float(6, 1024)): next = ScatterND(cache, at, x); yield go, next
        axes: Long(1) = prim.Constant(value=tensor([0])); y = ReduceSum(present_0, axes)
    """),
    "or longer": typed_ir("""
        x: Float(n, 1024); at: Long(n, 1); past_0: Float(m, 1024) -> y, present_0
        rows = Shape(past_0, end=1); present_0: Float(p, 1024) = prim.If(Equal(rows, [0]))
        with block(): a: Float(p, 1024) = Concat(past_0, x, axis=0); yield a
        with block(): b = ScatterND(past_0, at, x); yield b
        axes: Long(1) = prim.Constant(value=tensor([0])); y = ReduceSum(present_0, axes)
    """),
    "index_copy_": typed_ir(
        "x: Float(n, 1024); at: Long(n); past_0: Float(6, 1024)",
        "present_0 = aten.index_copy_(past_0, 0, at, x); y = aten.sum(present_0, None)",
        "y, present_0",
    ),
}

SUM = ir("""
    x, past_0: Float(2, 2) -> y, present_0
    at: Long(1, 1) = prim.Constant(value=tensor([0])); row: Float(1, 2) = prim.Constant(value=tensor([7.0, 8.0]))
    y: Float(2, 2) = Add(x, past_0); present_0: Float(2, 2) = ScatterND(y, at, row)
""")


def compiled(kind: str = "ScatterND", passes: str = "default") -> irc.CompiledModel:
    return irc.compile(parse_graph(SCATTERS[kind]), passes)


def feeds(model: irc.CompiledModel, at: int, rows: int, value: float) -> dict[str, np.ndarray]:
    """A step that writes ``rows`` positions from ``at`` on."""
    sizes = {a.name: len(a.shape or ()) for a in model.inputs}
    x = np.full((rows, WIDTH), value, np.float32)
    places = np.arange(at, at + rows)
    if sizes["x"] == 3:
        return {"x": x[None], "at": np.array([at])}
    return {"x": x, "at": places[:, None] if sizes["at"] == 2 else places}


def start_of(model: irc.CompiledModel) -> np.ndarray:
    (shape,) = (a.shape for a in model.inputs if a.name == "past_0")
    return np.zeros([SIZE if isinstance(dim, str) else dim for dim in shape or () if dim], np.float32)


def begun(model: irc.CompiledModel) -> irc.Session:
    """A session whose cache is all zeros."""
    session = irc.Session(model)
    session.run({**feeds(model, 0, 1, 0.0), "past_0": start_of(model)}, outputs=[])
    return session


def address(session: irc.Session) -> int:
    return session.caches["past_0"].ctypes.data


@pytest.mark.parametrize("passes", ["default", "none"])
@pytest.mark.parametrize("kind", SCATTERS)
def test_steps_write_where_the_cache_is(kind, passes):
    model = compiled(kind, passes)
    session, reference = irc.Session(model), compiled(kind, "none")
    past, where = start_of(model), []
    for at, rows, value in [(0, 3, 1.0), (3, 1, 2.0), (4, 1, 3.0), (4, 2, 4.0)]:
        given = feeds(model, at, rows, value)
        expected = reference.run({**given, "past_0": past})
        past = expected["present_0"]
        found = session.run(given if where else {**given, "past_0": start_of(model)}, outputs=["y"])
        np.testing.assert_array_equal(found["y"], expected["y"])
        np.testing.assert_array_equal(session.caches["past_0"], past)
        assert not where or session.counters.copies == 0
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
        held = hold(session, {**feeds(model, 0, 3, 1.0), "past_0": start_of(model)})
        before = np.array(held.caches["past_0"] if isinstance(held, irc.Session) else held)
        session.run(feeds(model, 0, 3, 2.0), outputs=[])
        np.testing.assert_array_equal(held.caches["past_0"] if isinstance(held, irc.Session) else held, before, name)
        assert session.caches["past_0"].sum() != before.sum()
        del held
        where = address(session)
        session.run(feeds(model, 2, 2, 5.0), outputs=[])
        assert address(session) == where, name


def test_another_output_is_what_it_was():
    session = irc.Session(irc.compile(parse_graph(SUM)))
    ones = np.ones((2, 2), np.float32)
    kept = [session.run({"x": ones}, outputs=["y"])["y"] for _ in range(3)]
    assert [y.tolist() for y in kept] == [[[1, 1], [1, 1]], [[8, 9], [2, 2]], [[8, 9], [3, 3]]]


# -- what goes wrong ----------------------------------------------------------


def failing(session: irc.Session, model: irc.CompiledModel) -> None:
    """A step that fails after it has begun: there is no such place."""
    with pytest.raises(Error, match=r"^IRC423: "):
        session.run(feeds(model, SIZE, 1, 9.0), outputs=[])


@pytest.mark.parametrize(
    "use",
    [lambda s, m: s.run(feeds(m, 0, 1, 1.0)), lambda s, m: s.fork(), lambda s, m: s.caches, lambda s, m: s.truncate(0)],
)
def test_a_step_that_fails_leaves_no_caches_that_it_may_have_written_to(use):
    model = compiled()
    session = irc.Session(model)
    session.run(feeds(model, 0, 2, 1.0), outputs=[])
    failing(session, model)
    with pytest.raises(Error, match=r"^IRC437: .*failed while it wrote to 'past_0'"):
        use(session, model)


def test_after_a_failure_sessions_are_reset_or_given_caches_or_go_on_from_a_fork():
    model = compiled()
    session = irc.Session(model)
    session.run(feeds(model, 0, 2, 1.0), outputs=[])
    fork = session.fork()
    session.run(feeds(model, 0, 1, 5.0), outputs=[])
    failing(session, model)
    np.testing.assert_array_equal(fork.run(feeds(model, 2, 1, 2.0))["y"], np.full((1, WIDTH), 4))
    mine = np.full((SIZE, WIDTH), 2, np.float32)
    np.testing.assert_array_equal(
        session.run({**feeds(model, 0, 1, 1.0), "past_0": mine})["y"], np.full((1, WIDTH), 11)
    )
    np.testing.assert_array_equal(session.run(feeds(model, 0, 1, 0.0))["y"], np.full((1, WIDTH), 10))
    session.run(feeds(model, 0, 1, 0.0), outputs=[])
    failing(session, model)
    session.reset()
    np.testing.assert_array_equal(session.run(feeds(model, 0, 1, 1.0))["y"], np.full((1, WIDTH), 1))


def test_a_step_that_is_refused_leaves_the_caches():
    model = compiled()
    session = irc.Session(model)
    session.run(feeds(model, 0, 2, 1.0), outputs=[])
    for wrong in ({}, {"x": 1, "at": 2, "z": 3}, {**feeds(model, 0, 1, 1.0), "x": np.ones((1, WIDTH))}):
        with pytest.raises(Error):
            session.run(wrong)
    np.testing.assert_array_equal(session.run(feeds(model, 2, 1, 1.0))["y"], np.full((1, WIDTH), 3))


class Lazy:
    shape = (1, WIDTH)

    def __init__(self, action):
        self.action = action

    def __array__(self, dtype=None, copy=None):
        self.action()
        return np.ones((1, WIDTH), np.float32)


def test_an_interrupt_leaves_the_caches_or_says_that_they_are_lost():
    model, lost = compiled(), []
    for at in range(1, 5000):
        session = irc.Session(model)
        session.run(feeds(model, 0, 2, 1.0), outputs=[])
        before = session.caches["past_0"].copy()
        stopped = interrupted(lambda: session.run(feeds(model, 1, 2, 2.0), outputs=[]), at)  # noqa: B023
        try:
            found = session.caches["past_0"]
        except Error as error:
            lost.append(error.code)
        else:
            assert (found == before).all() or found[1:3].sum() == 4 * WIDTH
        session.reset()
        np.testing.assert_array_equal(session.run(feeds(model, 0, 1, 1.0))["y"], np.full((1, WIDTH), 1))
        if not stopped:
            break
    assert 100 < at < 4999 and set(lost) == {"IRC437"} and len(lost) < at


def test_caches_are_lost_until_a_step_that_is_given_them_has_ended():
    model = compiled()
    session = irc.Session(model)
    session.run(feeds(model, 0, 2, 1.0), outputs=[])
    failing(session, model)
    codes, mine = [], np.zeros((SIZE, WIDTH), np.float32)

    def look():
        try:
            session.fork()
        except Error as error:
            codes.append(error.code)

    for at in range(1, 5000):
        step = {**feeds(model, 0, 1, 1.0), "past_0": mine}
        if not interrupted(lambda: session.run({**step, "x": Lazy(look)}, outputs=[]), at, "session.py"):  # noqa: B023
            break
        with pytest.raises(Error, match="IRC437"):
            session.run(feeds(model, 0, 1, 1.0))
    assert 10 < at < 4999 and set(codes) == {"IRC436"}
    np.testing.assert_array_equal(session.caches["past_0"][:2, 0], [1, 0])


def test_other_threads_see_what_was_or_what_is():
    model = compiled()
    session = irc.Session(model)
    session.run(feeds(model, 0, 2, 1.0), outputs=[])
    found = []
    other = Thread(target=lambda: found.append(session.caches["past_0"]))
    session.run({**feeds(model, 2, 1, 1.0), "x": Lazy(other.start)})
    other.join()
    assert found[0].sum() in (2 * WIDTH, 3 * WIDTH)


def test_a_step_that_is_refused_because_another_runs_leaves_the_caches():
    text = ir("""
        self: __torch__.Counter; x: Float(1024); past_0: Float(6, 1024) -> past_0
        n: int = prim.GetAttr(self, name="n"); next: int = add(n, 1); prim.SetAttr(self, next, name="n")
        row: Float(1024) = select(past_0, 0, 0); done: Float(1024) = copy_(row, x, False)
    """)
    model = irc.compile(import_torchscript(text, {"n": 0}))
    session = irc.Session(model, {"past_0": model.outputs[0].name})
    x, codes = np.ones(WIDTH, np.float32), []
    session.run({"x": x, "past_0": np.zeros((SIZE, WIDTH), np.float32)}, outputs=[])

    def step():
        try:
            session.run({"x": 2 * x}, outputs=[])
        except Error as error:
            codes.append(error.code)

    interrupted(lambda: model.run({"x": x, "past_0": np.zeros((SIZE, WIDTH), np.float32)}), 1, "plan.py", step)
    assert codes == ["IRC436"] and session.caches["past_0"].sum() == WIDTH
    step()
    assert session.caches["past_0"].sum() == 2 * WIDTH


@examples(60)
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
    start = start_of(model)
    sessions = [(begun(model), start)]
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
            sessions[value % len(sessions)] = begun(model), start
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
            np.testing.assert_array_equal(other.caches["past_0"], known)
