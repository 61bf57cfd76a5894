"""Sessions: which caches are handed on, what a step copies, and that nothing ever changes what an earlier step gave."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irc
from irc.errors import Error
from irc.ir import parse_graph
from tests.effort import examples
from tests.graphs import ir, typed_ir
from tests.runtime.helpers import f32

CACHE = ir("""
    x: Float(1, 2, seq, 4); past_0: Float(1, 2, past, 4); past_1: Float(1, past, 8) -> y, present_0, present_1
    shape: Long(3) = prim.Constant(value=tensor([1, -1, 8])); flat: "Float(1, *, 8)" = Reshape(x, shape)
    present_0: "Float(1, 2, *, 4)" = Concat(past_0, x, axis=2)
    present_1: "Float(1, *, 8)" = Concat(past_1, flat, axis=1)
    y: Float(1, 2, 1, 4) = ReduceSum(present_0, axes=[2], since_version=11)
""")

WINDOW = typed_ir(
    "x: Float(1, 2, seq, 4); past_0: Float(1, 2, past, 4)",
    "all = Concat(past_0, x, axis=2); present_0 = Slice(all, [-3], [1000], [2])",
    "present_0",
)

STATE = ir("x, h: Float(2)", "y: Float(2) = Add(x, h)", "y")


def rows(n: int, value: float = 1.0) -> np.ndarray:
    return np.full((1, 2, n, 4), value, np.float32)


def compiled(text: str = CACHE, passes: str = "default") -> irc.CompiledModel:
    return irc.compile(parse_graph(text), passes)


# -- what is handed on ----------------------------------------------------------


@pytest.mark.parametrize("passes", ["default", "none"])
def test_steps_are_those_of_a_model_that_is_given_its_caches_back(passes):
    session, model = irc.Session(compiled(passes=passes)), compiled(passes="none")
    past = {"past_0": rows(0), "past_1": np.empty((1, 0, 8), np.float32)}
    for n, value in [(3, 1.0), (1, 2.0), (1, 3.0), (2, 4.0)]:
        expected = model.run({"x": rows(n, value), **past})
        past = {"past_0": expected["present_0"], "past_1": expected["present_1"]}
        found = session.run({"x": rows(n, value)})
        assert found.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)
    assert {name: cache.shape for name, cache in session.caches.items()} == {
        "past_0": (1, 2, 7, 4),
        "past_1": (1, 7, 8),
    }


IN_TUPLES = typed_ir("""
    x, past, sum: Float(*) -> y
    present = Concat(past, x, axis=0); caches: "(Float(*), Float(*))" = prim.TupleConstruct(present, Add(sum, x))
    y: "(Float(*), (Float(*), Float(*)), Float(*))" = prim.TupleConstruct(x, caches, present)
""")


@pytest.mark.parametrize("passes", ["default", "none"])
def test_elements_of_tuples_are_handed_on(passes):
    session = irc.Session(compiled(IN_TUPLES, passes), {"past": "y.1.0", "sum": "y.1.1"}, capacity=8)
    seen = []
    for n in range(1, 7):
        given = {"past": f32(), "sum": f32(0)} if n == 1 else {}
        (first, (present, total), again) = session.run({"x": f32(n), **given})["y"]
        assert (first.tolist(), present.tolist(), total.tolist()) == ([n], [*range(1, n + 1)], [sum(range(n + 1))])
        assert [a.flags.writeable for a in (first, present, total, again)] == [True, False, False, True]
        again[:] = -1  # an output of its own
        seen.append((present, present.tolist()))
        assert passes == "none" or n == 1 or session.counters.in_place
    assert all(present.tolist() == expected for present, expected in seen)
    assert session.run({"x": f32(7)}, outputs=["y.1.1", "y.0"]).keys() == {"y.1.1", "y.0"}
    session.truncate(2)
    assert session.run({"x": f32(8)}, outputs=["y.1.0"])["y.1.0"].tolist() == [1, 2, 8]


def test_elements_of_tuples_are_results_of_models_too():
    model = compiled(IN_TUPLES)
    feeds = {"x": f32(1), "past": f32(2), "sum": f32(3)}
    found = model.run(feeds, outputs=["y.2", "y", "y.1"])
    assert found["y.2"].tolist() == [2, 1] and found["y.1"][1].tolist() == [4]
    found["y.2"][:] = 0
    assert found["y"][2].tolist() == [2, 1] and list(found) == ["y.2", "y", "y.1"]
    assert list(model.run(feeds)) == ["y"]
    with pytest.raises(Error, match=r"IRC411.*y\.3.*y\.[012]"):
        model.run(feeds, outputs=["y.3"])
    with pytest.raises(Error, match=r"IRC417.*only tensors.*y\.1"):
        irc.Session(model, {"past": "y.1"})
    with pytest.raises(Error, match=r"IRC417.*'y', 'y\.0', 'y\.1', 'y\.1\.0'"):
        irc.Session(model)


@pytest.mark.parametrize("length", [64, 256, 1024, 4096])
def test_a_step_copies_nothing_at_any_length(length):
    session = irc.Session(compiled())
    session.run({"x": rows(length)})
    for _ in range(2):  # from where the first step put them, to where there is reserve
        session.run({"x": rows(1)})
    for _ in range(5):
        session.run({"x": rows(1)})
        assert (session.counters.copies, session.counters.copied_bytes) == (0, 0)
        assert session.counters.in_place >= 2


@pytest.mark.parametrize("given", [{}, {"past_0": rows(3), "past_1": np.ones((1, 3, 8), np.float32)}])
def test_with_capacity_no_step_but_the_first_copies_until_it_is_full(given):
    session, plain = irc.Session(compiled(), capacity=12), irc.Session(compiled())
    session.run({"x": rows(2), **given})
    plain.run({"x": rows(2), **given})
    for n in range(12 - session.caches["past_0"].shape[2]):
        session.run({"x": rows(1, n)})
        plain.run({"x": rows(1, n)})
        assert (session.counters.copies, session.counters.in_place >= 2) == (0, True)
    fork = session.fork()
    for both in (session, fork):
        both.run({"x": rows(1, 99)})  # the capacity is used up
        assert both.counters.copies == 2
    plain.run({"x": rows(1, 99)})
    for name, cache in plain.caches.items():
        np.testing.assert_array_equal(session.caches[name], cache)
        np.testing.assert_array_equal(fork.caches[name], cache)


def test_a_capacity_is_a_positive_integer():
    for capacity in (0, -1, 1.5, "many", True):
        with pytest.raises(Error, match="capacity must be"):
            irc.Session(compiled(), capacity=capacity)
    session = irc.Session(compiled(), capacity=np.int64(3))  # type: ignore[arg-type]
    assert session.capacity == 3 and type(session.capacity) is int and type(session.fork().capacity) is int


def test_a_capacity_that_no_memory_has_leaves_the_session_as_it_was():
    session = irc.Session(compiled(), capacity=2**60)
    with pytest.raises(Error, match="IRC422"):
        session.run({"x": rows(2)})
    assert session.caches == {}


@pytest.mark.parametrize(
    ("past", "present"),
    [
        ("past_key_values.0.key", "present.0.key"),
        ("past_key_values.0.decoder.value", "present.0.decoder.value"),
        ("past_key_0", "present_key_0"),
        ("past_7", "present_7"),
        ("past_key_values_0", "present_key_values_0"),
        ("past.0", "present.0"),
    ],
)
def test_names_by_convention(past, present):
    text = STATE.replace("%h", f'%"{past}"').replace("%y", f'%"{present}"')
    assert irc.Session(compiled(text)).pairs == {past: present}


def test_a_state_does_not_keep_alive_what_it_is_the_last_of():
    text = typed_ir(
        "x: Float(seq, 8); past_0: Float(1, 8)", "present_0 = Slice(Add(x, past_0), [-1], [1000000])", "present_0"
    )
    session = irc.Session(compiled(text))
    for step in (1, 2):
        session.run({"x": np.ones((10000, 8), np.float32)}, outputs=[])
        state = session.caches["past_0"]
        np.testing.assert_array_equal(state, np.full((1, 8), step))
        assert state.base.nbytes == state.nbytes


def test_only_what_is_asked_for_is_returned_but_all_is_kept():
    session = irc.Session(compiled())
    assert list(session.run({"x": rows(3)}, outputs=["y"])) == ["y"]
    assert session.caches["past_1"].shape == (1, 3, 8)


def test_after_an_error_the_session_is_where_it_was():
    session = irc.Session(compiled())
    session.run({"x": rows(3)})
    with pytest.raises(Error, match="x"):
        session.run({"x": np.ones((1, 2, 1, 5), np.float32)})
    with pytest.raises(Error, match="no input 'z'"):
        session.run({"x": rows(1), "z": rows(1)})
    assert session.run({"x": rows(1)})["present_0"].shape == (1, 2, 4, 4)


# -- nothing changes ------------------------------------------------------------


def test_what_a_step_gave_never_changes_and_cannot_be_written():
    session = irc.Session(compiled())
    given_out = [session.run({"x": rows(1, i)})["present_0"] for i in range(10)]
    for i, array in enumerate(given_out):
        np.testing.assert_array_equal(array[0, 0, :, 0], np.arange(i + 1))
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)


@pytest.mark.parametrize("forked", [irc.Session.fork, copy.copy, copy.deepcopy])
def test_forks_share_a_prefix_and_never_meet(forked):
    session = irc.Session(compiled())
    session.run({"x": rows(4, 0)})
    session.run({"x": rows(1, 1)})
    session.run({"x": rows(1, 2)})
    fork = forked(session)
    a, b = session.run({"x": rows(1, 3)}), fork.run({"x": rows(1, 4)})
    assert (session.counters.copies, fork.counters.copies) == (0, 2), "both caches of the one that came second"
    np.testing.assert_array_equal(a["present_0"][0, 0, :, 0], [0, 0, 0, 0, 1, 2, 3])
    np.testing.assert_array_equal(b["present_0"][0, 0, :, 0], [0, 0, 0, 0, 1, 2, 4])
    for s in (session, fork):
        s.run({"x": rows(1, 5)})
        assert s.counters.copies == 0


def test_caches_given_to_the_model_itself_are_not_changed():
    session = irc.Session(compiled())
    for _ in range(4):
        session.run({"x": rows(1)})
    caches = session.caches
    results = compiled().run({"x": rows(1, 9), **caches})
    assert results["present_0"].flags.writeable
    assert not np.shares_memory(results["present_0"], caches["past_0"])
    results["present_0"][:] = 5
    np.testing.assert_array_equal(caches["past_0"], 1)
    np.testing.assert_array_equal(session.run({"x": rows(1)})["present_0"], 1)


@examples(30)
@given(st.data())
def test_any_tree_of_forks_is_as_if_everything_were_copied(data):
    text, length = data.draw(st.sampled_from([(CACHE, 100), (WINDOW, 3)]))
    model = compiled(text)
    leaves = [(irc.Session(model), np.empty(0, np.float32))]
    seen = []
    for step in range(data.draw(st.integers(1, 15))):
        session, values = leaves[data.draw(st.integers(0, len(leaves) - 1))]
        if data.draw(st.booleans()):
            session = session.fork()
            leaves.append((session, values))
        n = data.draw(st.integers(0, 3))
        out = session.run({"x": rows(n, step)})["present_0"]
        values = np.concatenate([values, np.full(n, step, np.float32)])[-length:]
        leaves = [(s, values if s is session else v) for s, v in leaves]
        seen.append((out, values))
    for array, values in seen:
        np.testing.assert_array_equal(array, np.broadcast_to(values[:, None], (1, 2, len(values), 4)))


# -- what is refused ------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        ({"pas_0": "present_0"}, "no input 'pas_0'; did you mean 'past_0'"),
        ({"past_0": "presents_0"}, "no output 'presents_0'; did you mean 'present_0'"),
        ({"present_0": "past_0"}, "from input to output.*'past_0': 'present_0'"),
        ({"past_0": "present_1"}, r"can never be input 'past_0'"),
        ({"past_1": "present_0"}, r"can never be input 'past_1'"),
        ({}, "not empty"),
        (["past_0"], "must be a dict"),
        ({"past_0": ["present_0"]}, "from the name of an input to the name of an output"),
        ({"past_0": 1}, "from the name of an input to the name of an output"),
    ],
)
def test_wrong_pairs(pairs, says):
    with pytest.raises(Error, match=says) as caught:
        irc.Session(compiled(), pairs)
    assert caught.value.code == "IRC417"


NUMBERED = ir("""
    x, past_0: Float(2); past_n: Long() -> present_0, present_n
    present_0: Float(2) = Add(x, past_0); present_n: Float() = Cast(past_n, to=1)
""")

REFUSED = {
    "no pairs by convention": (
        lambda: irc.Session(compiled(STATE)),
        "give pairs from input to output; inputs are 'x', 'h', outputs 'y'",
    ),
    "other element types": (
        lambda: irc.Session(
            compiled(STATE.replace("%h : Float", "%h : Long").replace("(%x, %h)", "(%x, %x)")), {"h": "y"}
        ),
        "can never be",
    ),
    "by convention, but none can be handed on": (
        lambda: irc.Session(compiled(NUMBERED.replace("(%present_0, %present_n)", "(%present_n, %x)"))),
        r"^IRC417: .*like an input.*give pairs.*'present_n', Float\(\), can never be",
    ),
    "no tensor": (
        lambda: irc.Session(compiled("graph(%x : Float(2)[], %y : Float(2)):\n  return (%x)"), {"x": "x"}),
        "only tensors can be caches",
    ),
    "no dict of inputs": (lambda: irc.Session(compiled()).run([rows(1)]), "inputs must be given as a dict"),
    "no compiled model": (lambda: irc.Session(parse_graph(CACHE)), r"irc.compile or irc.load"),
}


@pytest.mark.parametrize(("make", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(make, says):
    with pytest.raises(Error, match=says):
        make()


def test_pairs_by_convention_that_cannot_be_handed_on_are_left_to_the_caller():
    session = irc.Session(compiled(NUMBERED))
    assert session.pairs == {"past_0": "present_0"}
    feeds = {"x": f32(1, 2), "past_n": np.array(3)}
    assert [session.run(feeds)["present_0"].tolist() for _ in range(2)] == [[1, 2], [2, 4]]
    with pytest.raises(Error, match="no value for input 'past_n'"):
        session.run({"x": f32(1, 2)})


def test_an_output_that_is_not_what_the_model_states():
    text = STATE.replace("%y : Float(2)", "%y : Float(*)").replace("%x : Float(2)", "%x : Float(*, *)")
    session = irc.Session(compiled(text.replace("%y : Float(*)", "%y : Tensor"), "none"), {"h": "y"})
    with pytest.raises(Error, match=r"^IRC417: .*output for it is float32\[1, 2\], which is not the type of the input"):
        session.run({"x": np.ones((1, 2), np.float32)})


def test_a_step_in_the_middle_of_a_step_is_an_error():
    """In one thread it would wait for itself for ever."""
    session = irc.Session(compiled(STATE), {"h": "y"})

    class Lazy:
        shape = (2,)

        def __init__(self, action):
            self.action = action

        def __array__(self, dtype=None, copy=None):
            self.action()
            return np.ones(2, np.float32)

    for action in (lambda: session.run({"x": np.ones(2, np.float32)}), session.reset):
        with pytest.raises(Error, match=r"^IRC436: "):
            session.run({"x": Lazy(action)})
    assert session.caches == {}
    forked = []
    session.run({"x": Lazy(lambda: forked.append(session.fork().run({"x": np.ones(2, np.float32)})["y"]))})
    np.testing.assert_array_equal(forked[0], session.caches["h"])


def test_a_first_cache_of_no_known_shape():
    text = STATE.replace("Float(2)", "Float(*, *)")
    session = irc.Session(compiled(text), {"h": "y"})
    with pytest.raises(Error, match=r"^IRC418: .*more than one of its sizes is open"):
        session.run({"x": np.ones((2, 2), np.float32)})
    assert session.run({"x": np.ones((2, 2), np.float32), "h": np.ones((2, 2), np.float32)})["y"][0, 0] == 2


def test_a_state_that_is_not_given_begins_as_zeros():
    for _ in range(20):
        dirty = [np.full(2, 7, np.float32) for _ in range(50)]
        del dirty  # memory of that size is given out again
        session = irc.Session(compiled(STATE), {"h": "y"})
        np.testing.assert_array_equal(session.run({"x": f32(1, 2)})["y"], f32(1, 2))


@pytest.mark.parametrize(("size", "code"), [("n", "IRC414"), ("3", "IRC413")])
def test_what_a_session_holds_has_the_sizes_that_the_model_states(size, code):
    text = STATE.replace("%x : Float(2)", "%x : Float(n)").replace("%h : Float(2)", f"%h : Float({size})")
    session = irc.Session(compiled(text.replace("%y : Float(2)", "%y : Float(*)"), "none"), {"h": "y"})
    ones = [np.ones(n, np.float32) for n in range(4)]
    session.run({"x": ones[3], "h": ones[3]})
    if size == "n":
        with pytest.raises(Error) as caught:
            session.run({"x": ones[1]})
    else:
        text = text.replace("onnx::Add(%x, %h)", "onnx::Identity(%x)").replace("%y : Float(2)", "%y : Float(*)")
        session = irc.Session(compiled(text, "none"), {"h": "y"})
        session.run({"x": ones[2], "h": ones[3]})
        with pytest.raises(Error) as caught:
            session.run({"x": ones[2]})
    assert caught.value.code == code and "'h'" in str(caught.value) + caught.value.where
    assert session.run({"x": ones[3], "h": ones[3]})["y"].shape == (3,)
