"""Runs hold NumPy's BLAS to one thread, and make large products in parts: with the same digits on any number."""

import threading
from typing import Any

import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.runtime.bounds import CURRENT, in_own_scope, in_turn
from irc.runtime.kernels import numerics
from irc.runtime.kernels.matmul import matrix_product
from irc.runtime.limits import Limits
from irc.runtime.model import CompiledModel, Options
from irc.runtime.threads import OneThread, one_thread
from tests.effort import Tune
from tests.graphs import ir, typed_ir
from tests.runtime.helpers import graph_of, interrupted

WAIT = 30

PRODUCT = "graph(%x : Float(n, 4)):\n  %y : Float(n, 4) = onnx::MatMul(%x, %x)\n  return (%y)"


class Library:
    """A BLAS of eight threads, and what it was set to."""

    def __init__(self, threads: int = 8) -> None:
        self.threads = threads
        self.set: list[int] = []
        self.held = OneThread(lambda: self.threads, self.put)

    def put(self, threads: int) -> None:
        self.threads = threads
        self.set.append(threads)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    found = Library()
    monkeypatch.setattr("irc.runtime.model.one_thread", lambda: found.held)
    return found


@pytest.fixture
def seen(library: Library, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many threads the BLAS had at each product of NumPy's."""
    found: list[int] = []
    multiply = np.matmul
    monkeypatch.setattr(
        np, "matmul", lambda *args, **given: (found.append(library.threads), multiply(*args, **given))[1]
    )
    return found


@pytest.mark.parametrize(("options", "asked"), [(1, None), (None, None), (None, 1), (4, None), (None, 4)])
def test_the_blas_has_one_thread_in_a_run_and_as_many_as_before_after_it(
    library: Library, seen: list[int], options: int | None, asked: int | None
) -> None:
    model = CompiledModel(graph_of(PRODUCT), options=Options(threads=options))
    feeds = {"x": np.ones((4, 4), np.float32)}
    for _ in range(3):
        model.run(feeds, threads=asked)
    model.profile(feeds, threads=asked)
    irc.Session(model, {"x": "y"}).run(feeds, threads=asked)
    model.run(feeds, limits=Limits(steps=9))
    assert seen == [1] * 6 and library.threads == 8
    with pytest.raises(Error):
        model.run({"x": np.ones((3, 4), np.float32)}, threads=asked)
    assert library.threads == 8


INNER = {
    "a branch": ir("""
        c: Bool(); x: Float(4, 4) -> y
        y: Float(4, 4) = prim.If(c)
        with block(): a: Float(4, 4) = MatMul(x, x); yield a
        with block(): yield x
    """),
    "a group": typed_ir("x: Float(4, 4)", "a = MatMul(x, x); b = Relu(a)", "b"),
}


@pytest.mark.parametrize("where", INNER)
def test_products_inside_of_blocks_and_groups_are_found(library: Library, seen: list[int], where: str) -> None:
    feeds: dict[str, Any] = {"x": np.ones((4, 4), np.float32)}
    if where == "a branch":
        feeds["c"] = np.array(True)
    irc.compile(graph_of(INNER[where])).run(feeds)
    assert seen == [1] and library.threads == 8


def test_a_blas_of_one_thread_is_not_set() -> None:
    library = Library(1)
    assert library.held.call(lambda: library.threads) == 1 and library.set == []


def test_the_last_of_several_users_gives_the_threads_back() -> None:
    library, order = Library(), list[int]()
    inside, leave = threading.Barrier(2, timeout=WAIT), threading.Event()

    def other() -> None:
        inside.wait()
        leave.wait(WAIT)

    thread = threading.Thread(target=library.held.call, args=(other,))
    thread.start()
    inside.wait()

    def nested() -> None:
        order.append(library.threads)
        library.held.call(lambda: order.append(library.threads))
        order.append(library.threads)

    library.held.call(nested)
    order.append(library.threads)
    leave.set()
    thread.join()
    order.append(library.threads)
    assert order == [1, 1, 1, 1, 8]
    assert library.set == [1, 8]


def test_after_an_error_the_threads_are_given_back() -> None:
    library = Library()

    def fail() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        library.held.call(fail)
    assert library.threads == 8


def test_a_signal_handler_may_run_a_model_at_any_line() -> None:
    for at in range(1, 100):
        library, seen = Library(), list[int]()

        def look(library: Library = library, seen: list[int] = seen) -> None:
            seen.append(library.threads)

        def run_another(library: Library = library, look: Any = look) -> None:
            library.held.call(look)

        def run(library: Library = library, look: Any = look) -> None:
            library.held.call(look)

        stopped = interrupted(run, at, "runtime/threads.py", run_another)
        assert seen == [1] * (2 if stopped else 1) and library.threads == 8, at
        if not stopped:
            break
    assert at > 5


def test_the_blas_of_numpy_is_as_before_after_a_run() -> None:
    before = one_thread()._get()
    CompiledModel(graph_of(PRODUCT)).run({"x": np.ones((4, 4), np.float32)})
    assert one_thread()._get() == before


# -- large products ------------------------------------------------------------------


@pytest.fixture
def small_is_large(tune: Tune) -> None:
    tune("irc.runtime.kernels.numerics.LARGE", 1000)
    tune("irc.runtime.kernels.matmul.LARGE", 64)


SHAPES = [
    ((64, 9), (9, 64)),
    ((100, 9), (9, 7)),
    ((7, 30), (30, 100)),
    ((1, 40), (40, 130)),
    ((3, 40), (40, 130)),
    ((2, 3, 40, 16), (2, 3, 16, 33)),
    ((2, 1, 40, 16), (3, 16, 33)),
    ((40, 16), (3, 16, 33)),
    ((5, 20, 16), (16, 33)),
    ((1, 1, 40), (40, 130)),
    ((40,), (40, 130)),
    ((1, 2000), (2000, 1)),
]


@pytest.mark.usefixtures("small_is_large")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("shapes", SHAPES)
def test_products_in_parts(shapes: Any, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, shape).astype(dtype) for shape in shapes)  # so that sums are exact
    want = np.matmul(a, b)
    numbers: list[int] = []

    def backwards(pieces: int, piece: Any) -> None:
        numbers.append(pieces)
        for number in reversed(range(pieces)):
            piece(number)

    for left in (a, np.asfortranarray(a)):
        for right in (b, np.asfortranarray(b)):
            found = in_own_scope(None, backwards, matrix_product, left, right)
            assert found.dtype == want.dtype and found.shape == want.shape
            np.testing.assert_array_equal(found, want)
            out = np.full(want.shape, 7, dtype)
            assert in_own_scope(None, backwards, matrix_product, left, right, out) is out
            np.testing.assert_array_equal(out, want)
    if dtype is not np.int32 and a.ndim > 1 < max(want.shape[-2:]):
        assert numbers and max(numbers) > 1


def test_a_large_product_has_the_same_digits_on_any_number_of_threads() -> None:
    graph = graph_of(
        "graph(%a : Float(m, k), %b : Float(k, n)):\n %y : Float(m, n) = onnx::MatMul(%a, %b)\n return (%y)"
    )
    rng = np.random.default_rng(0)
    model = CompiledModel(graph)
    for m, k, n in ((300, 400, 300), (65, 1000, 600), (1100, 300, 110)):
        assert m * k * n >= numerics.LARGE
        feeds = {"a": rng.standard_normal((m, k), np.float32), "b": rng.standard_normal((k, n), np.float32)}
        found = [model.run(feeds, threads=threads)["y"] for threads in (1, 2, 5, None)]
        found.append(model.run(feeds, limits=Limits(seconds=60))["y"])
        for other in found[1:]:
            np.testing.assert_array_equal(found[0], other)
        np.testing.assert_allclose(found[0], feeds["a"].astype(np.float64) @ feeds["b"], rtol=1e-4, atol=1e-3)


@pytest.mark.usefixtures("small_is_large")
def test_parts_run_on_the_threads_of_the_run_and_no_others() -> None:
    """Each of two threads waits in its first part until the other one has come to one."""
    model = CompiledModel(graph_of(PRODUCT))
    barrier, met = threading.Barrier(2, timeout=WAIT), set[int]()
    x = np.ones((4, 4), np.float32)

    def part(number: int) -> None:
        if threading.get_ident() not in met:
            met.add(threading.get_ident())
            barrier.wait()
        assert (CURRENT.scope.share is in_turn) == (threading.get_ident() != main)

    main = threading.get_ident()
    seen: list[Any] = []
    model.runs.run = lambda *_: (seen.append(CURRENT.scope.share), CURRENT.scope.share(8, part), [x])[2]  # type: ignore[method-assign]
    model.run({"x": x}, threads=2)
    assert len(met) == 2
    barrier.abort()
    for options in ({"threads": 1}, {"limits": Limits(steps=10)}):
        seen.clear()
        met.add(main)
        with pytest.raises(AssertionError):
            model.run({"x": x}, **options)  # type: ignore[arg-type]
        assert seen == [in_turn]
