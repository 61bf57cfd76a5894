"""Growable arrays, and `irc::append_` in plans: what is copied, what stays where it is, who never sees whom."""

import copy
import gc
import pickle
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.errors import Error
from irc.runtime.array_memory import aligned_bytes
from irc.runtime.execution import Run
from irc.runtime.growable import GrowableArray, append_to_slot, buffer_of, reserve
from irc.runtime.limits import Limits
from irc.runtime.model import CompiledModel
from tests.effort import examples
from tests.graphs import ir
from tests.runtime.helpers import f32, graph_of, interrupted


def append(old, new, axis):
    """Both, and whether the first has stayed where it was."""
    frame = [Run(), old, None]
    append_to_slot(1, new, 2, axis, frame)
    return frame[2], frame[0].in_place == 1


def address(array):
    return np.asarray(array).ctypes.data


# -- the array -------------------------------------------------------------------


def test_numpys_functions_see_its_contents():
    start = np.arange(6, dtype=np.float32).reshape(2, 3)
    grown = GrowableArray(start, axis=1, capacity=8)
    assert grown.append(np.float32([[7], [8]]))
    expected = np.concatenate([start, np.float32([[7], [8]])], 1)
    np.testing.assert_array_equal(grown, expected)
    assert (grown.shape, grown.dtype, grown.ndim, len(grown), grown.nbytes) == ((2, 4), np.float32, 2, 2, 32)
    assert (grown.axis, grown.capacity) == (1, 8)
    np.testing.assert_array_equal(grown.array + 1, expected + 1)
    np.testing.assert_array_equal(np.exp(grown), np.exp(expected))
    np.testing.assert_array_equal(np.matmul(grown, np.ones((4, 1), np.float32)), expected @ np.ones((4, 1), np.float32))
    assert np.shares_memory(grown[:, 1:], grown.array)
    assert not np.shares_memory(np.array(grown), grown.array)
    assert np.asarray(grown, np.float64).dtype == np.float64
    grown[0, 0] = 5
    assert grown[0, 0] == 5
    assert start[0, 0] == 0, "what it started with was copied"
    assert "capacity=8" in repr(grown)


class Cache(GrowableArray):
    """With an ``__init__`` and attributes of its own."""

    def __init__(self, heads):
        super().__init__(np.ones((heads, 3), np.float32), 1, capacity=8)
        self.heads = heads


@pytest.mark.parametrize("make", [lambda: GrowableArray(np.ones((2, 3), np.float32), 1, capacity=8), lambda: Cache(2)])
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_growable(duplicate, make):
    grown = make()
    other = duplicate(grown)
    assert type(other) is type(grown)
    assert getattr(other, "heads", 2) == 2 and vars(other).keys() == vars(grown).keys()
    assert (other.axis, other.capacity) == (1, 8)
    assert other.append(np.zeros((2, 1), np.float32))
    other[:] = 5
    np.testing.assert_array_equal(grown, np.ones((2, 3)))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_the_data_pointer_is_unchanged_iff_capacity_was_reserved(axis):
    rows = np.ones([1 if i == axis % 3 else 2 for i in range(3)], np.float32)
    grown = GrowableArray(rows, axis, capacity=5)
    place = address(grown)
    for used in range(1, 12):
        fits = used < grown.capacity
        assert grown.append(rows) is fits
        assert (address(grown) == place) is fits
        place = address(grown)
        assert grown.shape[axis] == used + 1
    np.testing.assert_array_equal(grown, 1)


@pytest.mark.parametrize("appends", [1, 7, 64, 1000])
def test_copies_in_all_are_at_most_twice_the_appends(appends):
    row = np.ones((2, 1, 3), np.float32)
    grown = GrowableArray(row[:, :0], axis=1)
    copied = 0
    for length in range(appends):
        if not grown.append(row):
            copied += length
    assert copied <= 2 * appends
    assert grown.capacity <= 2 * appends
    assert grown.shape == (2, appends, 3)


def test_threads_that_continue_one_prefix_never_meet():
    prefix = GrowableArray(f32(0), 0, capacity=1 << 12).array
    results = {}
    start = threading.Barrier(4)

    def work(k):
        mine = prefix
        start.wait()
        for _ in range(200):
            mine, _ = append(mine, f32(k), 0)
        results[k] = mine

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(1, 5):
        np.testing.assert_array_equal(results[k], f32(0, *[k] * 200))


@pytest.mark.parametrize(
    "part",
    [
        lambda a: a[:2],  # too short
        lambda a: a[1:2],  # too short, and begins later
        lambda a: a[:0],
        lambda a: a[1::2],  # ends there, but leaves some out
        lambda a: a[::-1],  # backwards
        lambda a: a.T,  # begins and ends there, but has another order
        lambda a: a.view(np.int32),  # other elements
        lambda a: a[:, ::2],  # not whole rows
        lambda a: a.reshape(4, 2, 2),  # other rows
    ],
)
def test_only_what_ends_where_the_used_part_does_is_extended(part):
    start = np.arange(16, dtype=np.float32).reshape(4, 4)
    whole = GrowableArray(start, 0, capacity=8).array
    old = part(whole)
    row = np.zeros((1, *old.shape[1:]), old.dtype)
    both, in_place = append(old, row, 0)
    assert not in_place
    assert not np.shares_memory(both, whole)
    np.testing.assert_array_equal(both, np.concatenate([old, row]))
    np.testing.assert_array_equal(whole, start)


@pytest.mark.parametrize("way", ["the limit of the run", "memory"])
def test_where_twice_the_length_is_too_much_what_is_needed_will_do(way, monkeypatch):
    model = CompiledModel(graph_of(APPEND))
    past = np.ones((1000, 2), np.float32)
    limits = Limits(bytes=8 * 1500) if way == "the limit of the run" else None
    if limits is None:

        def little(count):
            if count > 8 * 1500:
                raise Error("IRC403", "out of memory")
            return aligned_bytes(count)

        monkeypatch.setattr("irc.runtime.growable.aligned_bytes", little)
    grown = GrowableArray(past, 0)
    out = model.run({"past": grown, "x": f32([2, 2])}, donate=["past"], limits=limits)["present"]
    np.testing.assert_array_equal(out, np.concatenate([past, f32([2, 2])]))
    assert buffer_of(out).capacity == 1001


def test_read_only_memory_is_copied_and_gets_no_reserve():
    view = GrowableArray(f32(1, 2), 0, capacity=8).array.view()
    view.flags.writeable = False
    both, in_place = append(view, f32(3), 0)
    assert not in_place
    assert both.base is None and both.flags.owndata, "it is what np.concatenate gives"
    assert both.flags.writeable


def test_memory_is_freed_without_the_collector():
    gc.disable()
    try:
        grown = GrowableArray(f32(1), 0, capacity=4)
        grown.append(f32(2))
        buffer = buffer_of(grown.array)
        assert buffer is not None
        gone = weakref.ref(buffer)
        del buffer
        del grown
        assert gone() is None
    finally:
        gc.enable()


class Refusing:
    """As a tensor of PyTorch that requires grad: it has the method, but gives no array."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("not now")


MASKED = np.ma.masked_array([1, 2, 3], [0, 1, 0])
SINGLES = np.ones((2, 3), np.float32)
REFUSED_ROWS = [
    (SINGLES, 1, np.ones((2, 1)), r"IRC421: .*float64\[2, 1\] cannot be appended.* the element types differ"),
    (SINGLES, 1, np.ones((1, 1), np.float32), "IRC421: .*cannot be appended"),  # NumPy would broadcast it
    (SINGLES, 1, np.ones((2, 3, 1), np.float32), "IRC421: .*cannot be appended"),
    (SINGLES, 0, [[1, 2]], r"IRC421: .*float32\[1, 2\] cannot .* only the sizes along that axis may differ"),
    (SINGLES, 0, [[1e39, 0, 0]], "IRC421: .*does not fit into float32"),
    (SINGLES, 0, np.ones((1, 3), ">f4"), "IRC421: .*>f4"),
    (SINGLES, 0, None, "IRC421: .*expected a tensor, got absent"),
    (SINGLES, 0, object(), "IRC421: .*expected a tensor, got object"),
    (SINGLES, 0, [np.ones(3)], "IRC412: .*expected elements of type float32, got float64"),
    (SINGLES, 0, MASKED, "IRC412: .*masked"),
    (SINGLES, 0, [MASKED], "IRC412: .*masked"),
    (SINGLES, 0, Refusing(), "IRC412: .*Refusing gives no array: not now"),
    (SINGLES, 0, [Refusing()], "IRC412: .*Refusing gives no array: not now"),
    *[([1, 2], 0, rows, "IRC421: ") for rows in (3, [[3]], [3.5], [[3], [4, 5]], np.array([3], ">i8"))],
]


@pytest.mark.parametrize(("start", "axis", "rows", "message"), REFUSED_ROWS)
def test_rows_that_do_not_fit_are_refused(start, axis, rows, message):
    grown = GrowableArray(start, axis, 8)
    if type(rows) is np.ndarray:
        with pytest.raises(Error, match=message):
            append(np.asarray(start), rows, axis)
        assert grown.append(grown[:1] if axis == 0 else grown[:, :1])  # nor after others that did fit
    before = np.array(grown)
    with pytest.raises(Error, match=message):
        grown.append(rows)
    np.testing.assert_array_equal(grown, before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, 0), "IRC421: .*strings or other objects"),
        ((object(), 0), "IRC421: .*strings or other objects"),
        ((np.array(["a"], object), 0), "IRC421: .*strings"),
        ((["a"], 0), "IRC421: .*strings"),
        (([b"a"], 0), "IRC421: .*strings"),
        ((np.zeros(2, "V0"), 0), "IRC421: .*elements without bytes"),
        (([[1], [2, 3]], 0), "IRC421: .*this is not an array"),
        ((MASKED, 0), "IRC412: .*masked"),
        (([MASKED], 0), "IRC412: .*masked"),
        ((Refusing(), 0), "IRC412: .*Refusing gives no array: not now"),
        (([Refusing()], 0), "IRC412: .*Refusing gives no array: not now"),
        ((SINGLES, 2), "IRC420: .*axis 2 is out of range"),
        *[((SINGLES, axis), "IRC420: .*integer") for axis in (0.5, None, True, np.zeros(2, int))],
        *[((SINGLES, 0, capacity), "IRC419: .*integer|negative") for capacity in ("a", 2.5, -1)],
        *[((SINGLES, 1, 1 << bits), "IRC422: .*GiB") for bits in (40, 62, 80)],  # before anything is allocated
    ],
)
def test_what_it_cannot_start_with(arguments, message):
    with pytest.raises(Error, match=message):
        GrowableArray(*arguments)


@pytest.mark.parametrize("dtype", ["float32", "float16", ml_dtypes.bfloat16, "complex64", "int8"])
def test_numbers_of_python_are_converted(dtype):
    grown = GrowableArray(np.ones((1, 2), dtype), 0, 8)
    for rows in ([[1, 2]], ((3, 4), (5, 6)), [np.ones(2, dtype)]):
        assert grown.append(rows)
    if dtype != "int8":
        assert grown.append([[0.5, -2.0]])
    np.testing.assert_array_equal(grown[:5], np.array([[1, 1], [1, 2], [3, 4], [5, 6], [1, 1]], dtype))


def test_nobody_waits_for_an_append_that_is_going_on():
    """A signal handler that appended to the array whose append it stopped would wait for ever."""
    prefix = GrowableArray(f32(0), 0, capacity=8).array
    turn = buffer_of(prefix)._turn.pop()
    both, stays = append(prefix, f32(1), 0)
    buffer_of(prefix)._turn.append(turn)
    np.testing.assert_array_equal(both, f32(0, 1))
    assert not stays
    assert append(prefix, f32(2), 0)[1]


def test_a_result_beyond_the_limit_is_refused_although_each_part_is_small():
    old, new = (np.broadcast_to(np.float32(1), (1 << 38,)) for _ in range(2))
    with pytest.raises(Error, match="GiB"):
        append(old, new, 0)


def test_an_append_that_is_interrupted_leaves_what_was_there():
    """Whatever was done of it, the next append gives what both hold, not memory that nobody has written."""
    row = np.ones((1, 4), np.float32)
    for at in range(1, 1000):
        grown = GrowableArray(np.zeros((2, 4), np.float32), 0, 8)
        stopped = interrupted(lambda: grown.append(row), at, "runtime/growable.py")  # noqa: B023  # called at once
        before = grown.array.copy()
        grown.append(row)
        np.testing.assert_array_equal(grown, np.concatenate([before, row]))
        if not stopped:
            break
    assert 5 < at < 999


@examples(60)
@given(st.data())
def test_any_tree_of_continuations_is_as_if_everything_were_copied(data):
    """Values are never changed by later appends, whichever of them are continued, in whatever order."""
    axis = data.draw(st.integers(0, 2))

    def rows(n, value):
        return np.full([n if i == axis else 2 for i in range(3)], value, np.int64)

    start = rows(data.draw(st.integers(0, 2)), 0)
    values = [(GrowableArray(start, axis, data.draw(st.integers(0, 6))).array, start)]
    for step in range(data.draw(st.integers(1, 20))):
        array, oracle = values[data.draw(st.integers(0, len(values) - 1))]
        part = slice(
            data.draw(st.sampled_from([None, None, 0, 1, -1, -2])), data.draw(st.sampled_from([None, None, -1]))
        )
        array, oracle = (x[(slice(None),) * axis + (part,)] for x in (array, oracle))
        new = rows(data.draw(st.integers(0, 3)), step + 1)
        values.append((append(array, new, axis)[0], np.concatenate([oracle, new], axis)))
    for array, oracle in values:
        np.testing.assert_array_equal(array, oracle)


# -- in plans ----------------------------------------------------------------------


APPEND = ir("past, x: Float(*, 2)", "present: 'Float(*, 2)' = irc.append_(past, x, axis=0)", "present")


def test_a_donated_growable_array_is_extended_where_it_is():
    model = CompiledModel(graph_of(APPEND))
    past = GrowableArray(np.ones((3, 2), np.float32), 0, capacity=8)
    out = model.run({"past": past, "x": f32([2, 2])}, donate=["past"])["present"]
    assert address(out) == address(past)
    assert (model.counters.in_place, model.counters.copies, model.counters.copied_bytes) == (1, 0, 0)
    out = model.run({"past": out, "x": f32([3, 3])}, donate=["past"])["present"]
    assert address(out) == address(past), "results lead to their reserve, too"
    assert (model.counters.in_place, model.counters.copies) == (1, 0)
    np.testing.assert_array_equal(out, f32([1, 1], [1, 1], [1, 1], [2, 2], [3, 3]))


def test_what_was_done_to_a_result_is_not_overlooked():
    """A buffer knows its latest view by identity; whoever holds a result may have given it another shape."""
    model = CompiledModel(graph_of(APPEND.replace(", 2)", ", *)")))
    past, x = GrowableArray(np.zeros((3, 4), np.float32), 0, capacity=9), np.ones((1, 4), np.float32)
    out = model.run({"past": past, "x": x}, donate=["past"])["present"]
    out.shape = (8, 2)
    with pytest.raises(Error, match=r"^IRC421: "):
        model.run({"past": out, "x": x}, donate=["past"])
    found = model.run({"past": out, "x": x[:, :2]}, donate=["past"])["present"]
    np.testing.assert_array_equal(found, np.concatenate([out, x[:, :2]]))


# -- going back --------------------------------------------------------------------


def append_only(*values):
    return reserve(f32(*values), 0, 9)


@pytest.mark.parametrize("part", [slice(1, 4), slice(None, None, 2), slice(2, None, -1)])
def test_no_room_goes_back_behind_what_it_shows(part):
    view = append_only(1, 2, 3, 4, 5)
    buffer, shown = buffer_of(view), view[part]
    expected = shown.tolist()
    del view
    buffer.go_back(shown)
    for start, stop in [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (0, 3)]:
        append(shown[start:stop], f32(9), 0)
        assert shown.tolist() == expected
