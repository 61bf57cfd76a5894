"""Loop-carried values may be overwritten in every iteration, even if initial values are needed later or are inputs."""

from collections.abc import Callable, Collection
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from irc.alias import analyze
from irc.ir import Node
from irc.passes import PassManager
from irc.runtime.kernels.registry import kernel
from irc.runtime.model import CompiledModel
from irc.runtime.plan import Lowerer
from irc.runtime.storage import Storage
from tests.programs.interpreter import interpret
from tests.runtime.helpers import boolean, f32, i64, module_of

RUNS = 3  # as it comes, planned, planned again
ITERATIONS = [0, 1, 2, 7]
LOOPS = ["onnx::Loop", "prim::Loop"]
X = f32([-1, 2, -3, 0.5])
WEIGHT = f32([0.5, -4, 1, 3])

_HEAD = """
graph(%n : Long(), %c : Bool(), %x : Float(1, 4)):
  %go : Bool() = prim::Constant[value={1}]()
  %two : Long() = prim::Constant[value={2}]()
  %flat : Long(1) = prim::Constant[value=tensor([4])]()
  %row : Long(2) = prim::Constant[value=tensor([1, 4])]()
  %k : Float(1, 4) = prim::Constant[value=@"k"]()
  %first : Float(1, 4) = onnx::Softsign(%x)
  %w : Float(1, 4) = onnx::Neg(%x)
"""


def graph(before: str, carried: str, body: str, after: str, loop: str = "onnx::Loop") -> str:
    """A graph with one loop; ``carried`` says what begins as what: ``h=first``, or several of these.

    Results are ``%y_h``. Of a ``prim::Loop``, whose iteration numbers are not tensors, a body must not use these.
    """
    pairs = [pair.split("=") for pair in carried.split()]
    kind = "Float(1, 4)"
    leading = "%i : Long(), %still : Bool(), " if loop == "onnx::Loop" else "%i : int, "
    lines = [
        *before.splitlines(),
        ", ".join(f"%y_{h} : {kind}" for h, _ in pairs)
        + f" = {loop}(%n, %go, {', '.join(f'%{value}' for _, value in pairs)})",
        f"  block0({leading}{', '.join(f'%{h} : {kind}' for h, _ in pairs)}):",
        *(f"    {line}" for line in body.splitlines()),
        *after.splitlines(),
    ]
    return _HEAD + "\n".join(f"  {line}" for line in lines)


def model_of(text: str, pipeline: str = "", backend: str = "numpy") -> CompiledModel:
    module = module_of(text, {"k": WEIGHT})
    if pipeline:
        PassManager(pipeline).run(module)
    return CompiledModel(module, backend=backend)


def feeds_of(iterations: int, x: np.ndarray = X) -> dict[str, np.ndarray]:
    return {"n": i64(iterations), "c": boolean(True), "x": x.copy()}


def check(
    text: str,
    iterations: int = 0,
    pipeline: str = "",
    donate: Collection[str] = (),
    wanted: list[Any] | None = None,
    **feeds: Any,
) -> list[int]:
    """How many results were in place in each run on NumPy.

    Results are ``wanted``, if not None, or those of an interpreter that reuses nothing, and stay as they were; those of
    native code, too, which may run all iterations at once. Arenas are overwritten between runs, so that nothing may
    refer to them. The weight and the inputs stay, too.
    """
    given = feeds or feeds_of(iterations)
    if wanted is None:
        graph = module_of(text, {"k": WEIGHT}).main
        wanted = interpret(graph, [np.array(given[v.name]) for v in graph.inputs])
    _, of_numpy = (_runs(model_of(text, pipeline, backend), wanted, given, donate) for backend in ("auto", "numpy"))
    return of_numpy


def _runs(model: CompiledModel, wanted: list[Any], given: dict[str, Any], donate: Collection[str]) -> list[int]:
    counts: list[int] = []
    left: list[dict[str, Any]] = []
    for _ in range(RUNS):
        feeds = {name: np.array(x) if isinstance(x, np.ndarray) else x for name, x in given.items()}
        left.append(model.run(feeds, donate=donate))
        counts.append(model.counters.in_place)
        for arena in model.runs._arenas:
            arena.memory[:] = 0xFF
        for results in left:
            check_alike([*results.values()], wanted)
        if not donate:
            check_alike([*feeds.values()], [*given.values()])
    return counts


def check_alike(found: Any, wanted: Any) -> None:
    if isinstance(wanted, list | tuple):
        for one, other in zip(found, wanted, strict=True):
            check_alike(one, other)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


STEP = "%b : Float(1, 4) = onnx::Add(%w, %h)\n%d : Float(1, 4) = onnx::Relu(%b)\n"
AGAIN = "%e : Float(1, 4) = onnx::Softmax(%{})\n"
"""An operator that never writes over its operand: it reads a value once more."""

KEPT = {
    "returned": ("", "h=first", "return (%y_h, %first)"),
    "read later": ("", "h=first", AGAIN.format("first") + "return (%y_h, %e)"),
    "a view is returned": (
        "%v : Float(4) = onnx::Reshape(%first, %flat)",
        "h=first",
        "return (%y_h, %v)",
    ),
    "it is a view": (
        "%v : Float(1, 4) = onnx::Reshape(%first, %row)",
        "h=v",
        "return (%y_h, %first)",
    ),
    "constant": ("", "h=k", "return (%y_h)"),
    "constant, read later": ("", "h=k", AGAIN.format("k") + "return (%y_h, %e)"),
    "input": ("", "h=x", "return (%y_h)"),
    "input, read later": ("", "h=x", AGAIN.format("x") + "return (%y_h, %e)"),
    "captured by the body": ("", "h=w", "return (%y_h)"),
    "the result is read": ("", "h=first", AGAIN.format("y_h") + "return (%e, %first)"),
}


@pytest.mark.covering(2)
@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("case", KEPT)
def test_only_the_first_write_is_fresh(case: str, loop: str, iterations: int):
    before, carried, after = KEPT[case]
    text = graph(before, carried, STEP + "-> (%go, %d)", after, loop)
    assert check(text, iterations) == [max(0, 2 * iterations - 1)] * RUNS


@pytest.mark.parametrize("iterations", ITERATIONS)
def test_a_donated_input_that_is_read_later_is_not_overwritten(iterations: int):
    text = graph("", "h=x", STEP + "-> (%go, %d)", AGAIN.format("x") + "return (%y_h, %e)")
    assert check(text, iterations, donate=["x"]) == [max(0, 2 * iterations - 1)] * RUNS


@pytest.mark.parametrize("loop", LOOPS)
def test_what_nothing_needs_later_is_handed_over(loop: str):
    text = graph("", "h=first", STEP + "-> (%go, %d)", "return (%y_h)", loop)
    assert check(text, 7) == [14] * RUNS
    text = graph("", "h=x", STEP + "-> (%go, %d)", "return (%y_h)", loop)
    assert check(text, 7, donate=["x"]) == [14] * RUNS


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("after", ["return (%y_h, %y_g)", "return (%y_h, %y_g, %first)"])
def test_two_values_that_begin_as_one(loop: str, iterations: int, after: str):
    body = STEP + "%a : Float(1, 4) = onnx::Abs(%g)\n%f : Float(1, 4) = onnx::Sub(%a, %w)\n-> (%go, %d, %f)"
    assert (
        check(graph("", "h=first g=first", body, after, loop), iterations) == [max(0, 2 * (2 * iterations - 1))] * RUNS
    )


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("loop", LOOPS)
def test_swapped_values(loop: str, iterations: int):
    """In the second iteration, each value begins in memory that the first one has made."""
    body = STEP + "%f : Float(1, 4) = onnx::Neg(%g)\n-> (%go, %f, %d)"
    after = "return (%y_h, %y_g, %first, %x)"
    assert check(graph("", "h=first g=x", body, after, loop), iterations) == [max(0, 3 * iterations - 2)] * RUNS


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("first", ["first", "x", "k"])
def test_values_that_are_only_swapped(loop: str, iterations: int, first: str):
    """After the first iteration, what is carried is still what the loop began with."""
    body = "%b : Float(1, 4) = onnx::Add(%g, %h)\n%d : Float(1, 4) = onnx::Neg(%f)\n-> (%go, %g, %d, %h)"
    check(graph("", f"h={first} g=w f={first}", body, f"return (%y_h, %y_g, %y_f, %{first}, %w)", loop), iterations)


PASSED_ON = {
    "itself": "%h",
    "a view": "%v",
    "a view of a view": "%u",
}


@pytest.mark.covering(2)
@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("what", PASSED_ON)
@pytest.mark.parametrize("first", ["first", "x", "k"])
def test_what_is_passed_on_is_not_overwritten_later(loop: str, iterations: int, what: str, first: str):
    """Neither in a later iteration nor after the loop; nor is what an iteration makes of it the reason to."""
    body = (
        "%o : Float(4) = onnx::Reshape(%h, %flat)\n%v : Float(1, 4) = onnx::Reshape(%o, %row)\n"
        "%u : Float(1, 4) = onnx::Transpose[perm=[0, 1]](%v)\n%d : Float(1, 4) = onnx::Add(%g, %h)\n"
        f"-> (%go, {PASSED_ON[what]}, %d)"
    )
    after = f"%z : Float(1, 4) = onnx::Neg(%y_h)\nreturn (%z, %y_g, %{first})"
    assert check(graph("", f"h={first} g={first}", body, after, loop), iterations) == [max(0, iterations - 1)] * RUNS


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("first", ["first", "x", "k"])
def test_a_branch_passes_the_value_on_in_some_iterations(iterations: int, first: str):
    body = (
        "%early : Bool() = onnx::Less(%i, %two)\n"
        "%r : Float(1, 4) = prim::If(%early)\n  block0():\n    -> (%h)\n  block1():\n"
        "    %b : Float(1, 4) = onnx::Add(%w, %h)\n    %d : Float(1, 4) = onnx::Relu(%b)\n    -> (%d)\n-> (%go, %r)"
    )
    later = max(0, iterations - 2)
    assert (
        check(graph("", f"h={first}", body, f"return (%y_h, %{first})"), iterations) == [max(0, 2 * later - 1)] * RUNS
    )


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("loop", LOOPS)
def test_views_are_carried(loop: str, iterations: int):
    body = (
        "%o : Float(4) = onnx::Reshape(%h, %flat)\n%s : Float(4) = onnx::Neg(%o)\n"
        "%d : Float(1, 4) = onnx::Reshape(%s, %row)\n%e : Float(1, 4) = onnx::Relu(%d)\n"
        "%v : Float(1, 4) = onnx::Reshape(%e, %row)\n-> (%go, %v)"
    )
    assert (
        check(graph("", "h=first", body, "return (%y_h, %first)", loop), iterations)
        == [max(0, 2 * iterations - 1)] * RUNS
    )


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize(("written", "read"), [("y_h", "first"), ("first", "y_h"), ("y_h", "x"), ("x", "y_h")])
def test_without_an_iteration_the_result_is_the_initial_value(iterations: int, written: str, read: str):
    """Whichever of them is needed longer."""
    after = f"%z : Float(1, 4) = onnx::Neg(%{written})\n" + AGAIN.format(read) + "return (%z, %e)"
    for first in ("first", "x"):
        text = graph("", f"h={first}", STEP + "-> (%go, %d)", after)
        check(text, iterations)
        check(text, iterations, donate=["x"])


@pytest.mark.parametrize("iterations", ITERATIONS)
def test_the_place_of_the_initial_value_is_in_use_as_long_as_the_result(iterations: int):
    """Though the graph does not read the initial value again: without an iteration, the result lies in its place."""
    after = "%t : Float(1, 4) = onnx::Softmax(%x)\n%e : Float(1, 4) = onnx::Softmax(%y_h)\n"
    after += "%f : Float(1, 4) = onnx::Softmax(%t)\nreturn (%e, %f)"
    check(graph("", "h=first", STEP + "-> (%go, %d)", after), iterations)


@pytest.mark.parametrize("iterations", ITERATIONS)
def test_an_operator_of_both_does_not_write_over_the_initial_value(iterations: int):
    """Its other operand may be a view of it."""
    text = graph("", "h=first", STEP + "-> (%go, %d)", "%z : Float(1, 4) = onnx::Sub(%first, %y_h)\nreturn (%z)")
    assert check(text, iterations) == [2 * iterations] * RUNS


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_that_captures_the_result_does_not_own_the_initial_value(loop: str, iterations: int):
    after = """%z : Float(1, 4) = prim::Loop(%two, %go, %first)
  block0(%j : int, %g : Float(1, 4)):
    %q : Float(1, 4) = onnx::Add(%y_h, %g)
    -> (%go, %q)
return (%z)"""
    check(graph("", "h=first", STEP + "-> (%go, %d)", after, loop), iterations)


@pytest.mark.covering(2)
@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("returned", ["%f, %f", "%h, %h", "%g, %g", "%d, %d", "%r, %r"])
@pytest.mark.parametrize(("written", "read"), [("y_h", "y_g"), ("y_g", "y_h")])
def test_one_value_returned_for_two_is_overwritten_by_neither(
    loop: str, iterations: int, returned: str, written: str, read: str
):
    body = STEP + "%f : Float(1, 4) = onnx::Sub(%d, %g)\n"
    body += "%r : Float(1, 4) = prim::If(%c)\n  block0():\n    -> (%d)\n  block1():\n    -> (%h)\n"
    after = f"%z : Float(1, 4) = onnx::Neg(%{written})\n" + AGAIN.format(read) + "return (%z, %e, %first)"
    check(graph("", "h=first g=x", body + f"-> (%go, {returned})", after, loop), iterations)


@pytest.mark.parametrize("iterations", ITERATIONS)
def test_a_capture_that_is_returned_is_not_overwritten_by_the_next_iteration(iterations: int):
    body = STEP + "%early : Bool() = onnx::Less(%i, %two)\n%r : Float(1, 4) = prim::If(%early)\n"
    body += "  block0():\n    -> (%w)\n  block1():\n    -> (%d)\n-> (%go, %r)"
    check(graph("", "h=first", body, "return (%y_h, %first)"), iterations)


@pytest.mark.parametrize("iterations", ITERATIONS)
def test_a_view_of_the_result_in_a_group_shows_the_initial_value(iterations: int):
    """Without an iteration it is that, and the group must not write over it before it has read the view."""
    after = "%z : Float(1, 4), %e : Float(4) = prim::FusionGroup_0(%y_h, %first, %flat)\nreturn (%z, %e)"
    text = graph("", "h=first", STEP + "-> (%go, %d)", after)
    text += """
with prim::FusionGroup_0 = graph group(%y : Float(1, 4), %first : Float(1, 4), %flat : Long(1)):
  %v : Float(4) = onnx::Reshape(%y, %flat)
  %z : Float(1, 4) = onnx::Neg(%first)
  %e : Float(4) = onnx::Softmax(%v)
  return (%z, %e)
"""
    check(text, iterations)


NESTED = """%p : Float(1, 4) = prim::Loop(%n, %go, {initial})
  block0(%j : int, %a : Float(1, 4)):
    %b : Float(1, 4) = onnx::Add(%w, %a)
    %f : Float(1, 4) = onnx::Relu(%b)
    -> (%go, {returned})
%d : Float(1, 4) = onnx::{last}
-> (%go, %d)"""


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("initial", "last", "fresh"),
    [("%h", "Neg(%p)", 0), ("%h", "Sub(%p, %h)", 1), ("%first", "Sub(%p, %h)", 1), ("%k", "Sub(%p, %h)", 1)],
    ids=["handed over", "needed later in the iteration", "captured", "constant"],
)
def test_a_loop_in_a_loop(loop: str, iterations: int, initial: str, last: str, fresh: int):
    """Each run of the inner loop makes its first result in new memory, if what it begins with is not its own."""
    body = NESTED.format(initial=initial, last=last, returned="%f")
    text = graph("", "h=first", body, "return (%y_h, %first)", loop)
    in_place = iterations * (2 * iterations + 1 - fresh) - (not fresh) if iterations else 0
    assert check(text, iterations) == [in_place] * RUNS
    check(graph("", "h=first", body.replace("(%go, %f)", "(%go, %a)"), "return (%y_h, %first)", loop), iterations)


@pytest.mark.parametrize("donate", [[], ["x"]])
@pytest.mark.parametrize("iterations", [1, 3])
def test_one_loop_after_the_other(iterations: int, donate: list[str]):
    """Each begins with what the one before gave, which is returned: more than are told apart."""
    lines = [_HEAD]
    last = "x"
    for number in range(50):
        lines += [
            f"  %y{number} : Float(1, 4) = prim::Loop(%n, %go, %{last})",
            f"    block0(%i{number} : int, %h{number} : Float(1, 4)):",
            f"      %b{number} : Float(1, 4) = onnx::Add(%w, %h{number})",
            f"      %d{number} : Float(1, 4) = onnx::Relu(%b{number})",
            f"      -> (%go, %d{number})",
        ]
        last = f"y{number}"
    text = "\n".join([*lines, f"  return ({', '.join(f'%y{n}' for n in range(50))}, %x)"])
    main = module_of(text, {"k": WEIGHT}).main
    assert len(Lowerer(main, guarded=True).storage.shown(main.value(last))) < 40
    assert all(
        30 * (2 * iterations - 1) <= count <= 50 * (2 * iterations - 1)
        for count in check(text, iterations, donate=donate)
    )
    check(text, 0, donate=donate)


SCAN = """
graph(%x : Float(1, 4), %rows : Float(5, 1, 4)):
  %first : Float(1, 4) = onnx::Softsign(%x)
  %y : Float(1, 4), %z : Float(5, 1, 4) = onnx::Scan[num_scan_inputs=1, since_version=11](%first, %rows)
    block0(%h : Float(1, 4), %r : Float(1, 4)):
      %b : Float(1, 4) = onnx::Add(%r, %h)
      %d : Float(1, 4) = onnx::Relu(%b)
      -> (%d, %d)
  return (%y, %z, %first)
"""
OVER_BATCHES = """
graph(%lengths : Long(2), %x : Float(2, 4), %rows : Float(2, 3, 4)):
  %first : Float(2, 4) = onnx::Softsign(%x)
  %y : Float(2, 4) = onnx::Scan[num_scan_inputs=1, since_version=8](%lengths, %first, %rows)
    block0(%h : Float(4), %r : Float(4)):
      %b : Float(4) = onnx::Add(%r, %h)
      %d : Float(4) = onnx::Relu(%b)
      -> (%d)
  return (%y, %first)
"""
BEGIN_AS_ONE = """
graph(%x : Float(4), %rows : Float(5, 4)):
  %first : Float(4) = onnx::Softsign(%x)
  %y : Float(4), %z : Float(4) = onnx::Scan[num_scan_inputs=1, since_version=11](%first, %first, %rows)
    block0(%h : Float(4), %g : Float(4), %r : Float(4)):
      %b : Float(4) = onnx::Sub(%h, %r)
      %d : Float(4) = onnx::Add(%g, %b)
      -> (%d, %d)
  return (%y, %z, %first)
"""
ROWS = np.linspace(-2, 2, 24, dtype=np.float32)
FIRST = X / (1 + np.abs(X))


def states(first: np.ndarray, rows: np.ndarray, step: Callable[..., np.ndarray]) -> list[np.ndarray]:
    return [*accumulate(rows, step, initial=first)][1:]


def test_the_state_of_a_scan():
    rows = ROWS[:20].reshape(5, 1, 4)
    found = states(FIRST, rows, lambda h, r: np.maximum(r + h, 0))
    assert check(SCAN, x=X, rows=rows, wanted=[found[-1], np.stack(found), FIRST]) == [2 * 5 - 1] * RUNS


def test_the_state_of_a_scan_over_batches():
    """Sequences of several lengths; each begins with its slice of one state."""
    x, rows = np.concatenate([X, -X]), ROWS.reshape(2, 3, 4)
    first = x / (1 + np.abs(x))
    last = [states(first[b], rows[b, :n], lambda h, r: np.maximum(r + h, 0))[-1] for b, n in enumerate([3, 1])]
    counts = check(OVER_BATCHES, lengths=i64([3, 1]), x=x, rows=rows, wanted=[np.stack(last), first])
    assert counts == [(2 * 3 - 1) + (2 * 1 - 1)] * RUNS


def test_states_of_a_scan_that_are_one_value():
    rows = ROWS[:20].reshape(5, 4)
    last = states(FIRST[0], rows, lambda h, r: h + (h - r))[-1]
    check(BEGIN_AS_ONE, x=X[0], rows=rows, wanted=[last, last, FIRST[0]])


# -- in one container with something else -----------------------------------------


def copied_bytes(text: str, iterations: int) -> list[int]:
    """How many bytes of results were copied in each run, because something else has them too."""
    model = model_of(text)
    found: list[int] = []
    for _ in range(RUNS):
        model.run(feeds_of(iterations))
        found.append(model.counters.copied_bytes)
    return found


TUPLE = "%t : (Tensor, Tensor) = prim::TupleConstruct(%{}, %{})\n"
UNPACKED = "%p : Float(1, 4), %q : Float(1, 4) = prim::TupleUnpack(%t)\n"
TOGETHER = {
    "a tuple": TUPLE,
    "a list": "%t : Tensor[] = prim::ListConstruct(%{}, %{})\n",
    "a list in a tuple": "%l : Tensor[] = prim::ListConstruct(%{}, %{})\n"
    "%t : (Tensor[], Tensor[]) = prim::TupleConstruct(%l, %l)\n",
    "a tuple of a branch": "%t : (Tensor, Tensor) = prim::If(%c)\n  block0():\n"
    "    %u : (Tensor, Tensor) = prim::TupleConstruct(%{0}, %{1})\n    -> (%u)\n  block1():\n"
    "    %v : (Tensor, Tensor) = prim::TupleConstruct(%{1}, %{0})\n    -> (%v)\n",
}


@pytest.mark.covering(2)
@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("first", ["first", "x", "k"])
@pytest.mark.parametrize("container", TOGETHER)
def test_what_was_made_before_the_loop_is_no_reason_to_copy(container: str, first: str, loop: str, iterations: int):
    """The result is copied only if the loop made no iteration and its initial value is not the run's own."""
    after = TOGETHER[container].format("y_h", "w") + "return (%t)"
    text = graph("", f"h={first}", STEP + "-> (%go, %d)", after, loop)
    assert copied_bytes(text, iterations) == [0 if iterations or first == "first" else X.nbytes] * RUNS
    assert check(text, iterations) == [max(0, 2 * iterations - (first != "first"))] * RUNS


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("members", [("y_h", "first"), ("first", "y_h")])
def test_the_initial_value_is_returned_in_one_tuple_with_the_result(
    members: tuple[str, str], loop: str, iterations: int
):
    """Two results never share memory, so there is one copy if the two are one; the first iteration must not write."""
    text = graph("", "h=first", STEP + "-> (%go, %d)", TUPLE.format(*members) + "return (%t)", loop)
    assert copied_bytes(text, iterations) == [0 if iterations else X.nbytes] * RUNS
    assert check(text, iterations) == [max(0, 2 * iterations - 1)] * RUNS


@pytest.mark.parametrize("iterations", ITERATIONS)
def test_results_that_are_joined_are_made_in_place(iterations: int):
    after = "%l : Tensor[] = prim::ListConstruct(%y_h, %w)\n%axis : int = prim::Constant[value=0]()\n"
    after += "%z : Float(2, 4) = aten::cat(%l, %axis)\nreturn (%z)"
    text = graph("", "h=x", STEP + "-> (%go, %d)", after)
    assert check(text, iterations) == [max(0, 2 * iterations - 1)] * RUNS


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("first", ["first", "w", "p"])
def test_a_tuple_that_each_iteration_reads_keeps_the_initial_value(first: str, loop: str, iterations: int):
    """The first iteration overwrites nothing that the tuple holds; later ones overwrite what the last has made."""
    body = (
        "%u : Float(1, 4), %v : Float(1, 4) = prim::TupleUnpack(%t)\n%a : Float(1, 4) = onnx::Add(%v, %h)\n"
        "%b : Float(1, 4) = onnx::Sub(%a, %u)\n-> (%go, %b)"
    )
    text = graph(TUPLE.format("first", "w") + UNPACKED, f"h={first}", body, "return (%y_h)", loop)
    assert check(text, iterations) == [max(0, 2 * iterations - 1)] * RUNS
    assert copied_bytes(text, iterations) == [0 if iterations else X.nbytes] * RUNS


@pytest.mark.covering(2)
@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("first", ["first", "w", "x"])
@pytest.mark.parametrize("returned", ["%h", "%p", "%q", "%e"])
def test_a_tuple_of_what_is_carried_is_read_in_the_iteration(returned: str, first: str, loop: str, iterations: int):
    body = TUPLE.format("h", "w") + STEP + UNPACKED + "%a : Float(1, 4) = onnx::Sub(%d, %p)\n"
    body += f"%e : Float(1, 4) = onnx::Mul(%a, %q)\n-> (%go, {returned})"
    check(graph("", f"h={first}", body, f"return (%y_h, %{first})", loop), iterations)


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("later", ["y_h", "p", "q", "first"])
def test_a_tuple_that_is_returned_keeps_what_a_later_loop_begins_with(later: str, loop: str, iterations: int):
    after = TUPLE.format("y_h", "w") + UNPACKED
    after += f"""%z : Float(1, 4) = {loop}(%n, %go, %{later})
  block0({"%j : Long(), %on : Bool()" if loop == "onnx::Loop" else "%j : int"}, %g : Float(1, 4)):
    %r : Float(1, 4) = onnx::Add(%g, %g)
    %s : Float(1, 4) = onnx::Neg(%r)
    -> (%go, %s)
return (%t, %z)"""
    check(graph("", "h=first", STEP + "-> (%go, %d)", after, loop), iterations)


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize("written", ["p", "q"])
def test_what_is_written_through_the_tuple_is_what_it_holds(written: str, iterations: int):
    """Of a loop that made no iteration, that is the initial value, which therefore cannot be borrowed."""
    after = TUPLE.format("y_h", "w") + UNPACKED + f"%z : Float(1, 4) = onnx::Neg_(%{written})\nreturn (%t, %first)"
    text = graph("", "h=first", STEP + "-> (%go, %d)", after)
    assert copied_bytes(text, iterations) == [0 if iterations else X.nbytes] * RUNS
    check(text, iterations)


# -- what may not be read-only ----------------------------------------------------


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("%d : Float(1, 4) = onnx::Neg_(%h)\n-> (%go, %d)", "return (%y_h, %first)"),
        (STEP + "-> (%go, %d)", "%z : Float(1, 4) = onnx::Neg_(%y_h)\nreturn (%z, %first)"),
    ],
    ids=["in the loop", "after it"],
)
def test_what_is_written_is_the_initial_value_itself(body: str, after: str, iterations: int):
    """After the loop, if that made no iteration."""
    check(graph("", "h=first", body, after), iterations)


@pytest.mark.parametrize("iterations", ITERATIONS)
def test_what_a_loop_in_a_group_writes_is_what_the_group_is_given(iterations: int):
    """The loop before may give back what it began with, which therefore cannot be borrowed."""
    after = "prim::FusionGroup_0(%two, %go, %y_h)\nreturn (%y_h, %first)"
    text = graph("", "h=first", STEP + "-> (%go, %d)", after)
    text += """
with prim::FusionGroup_0 = graph group(%n : Long(), %go : Bool(), %x : Float(1, 4)):
  %y : Float(1, 4) = prim::Loop(%n, %go, %x)
    block0(%i : int, %h : Float(1, 4)):
      %d : Float(1, 4) = onnx::Add_(%h, %h)
      -> (%go, %d)
  return ()
"""
    check(text, iterations)


@pytest.mark.parametrize("iterations", ITERATIONS)
def test_in_place_forms_of_what_an_iteration_makes_count_as_before(iterations: int):
    """The pass writes Relu over what Add made; nothing writes what the loop carries but Add, of itself."""
    text = graph("", "h=first", STEP + "-> (%go, %d)", "return (%y_h, %first)")
    assert check(text, iterations, "in-place") == [max(0, 2 * iterations - 1)] * RUNS


@pytest.mark.parametrize("iterations", ITERATIONS)
def test_lists_are_carried(iterations: int):
    text = """
    graph(%n : int, %x : Float(4)):
      %go : bool = prim::Constant[value=True]()
      %zero : int = prim::Constant[value=0]()
      %first : Float(4) = onnx::Softsign(%x)
      %l : Tensor[] = prim::ListConstruct(%first)
      %m : Tensor[] = prim::Loop(%n, %go, %l)
        block0(%i : int, %h : Tensor[]):
          %a : Float(4) = aten::__getitem__(%h, %zero)
          %b : Float(4) = onnx::Neg(%a)
          %c : Float(4) = onnx::Add(%b, %b)
          %k : Tensor[] = prim::ListConstruct(%c)
          -> (%go, %k)
      %y : Float(4) = aten::__getitem__(%m, %zero)
      %z : Float(4) = onnx::Neg(%y)
      return (%z, %first)
    """
    check(text, n=iterations, x=X[0])


@pytest.mark.parametrize("iterations", ITERATIONS)
def test_what_unknown_code_is_given_in_an_iteration_is_not_overwritten(iterations: int):
    kept: list[tuple[np.ndarray, np.ndarray]] = []

    @kernel("test.carried::Keep")
    def keep(node: Node) -> Callable[..., Any]:
        def run(x: Any) -> Any:
            kept.append((x, x.copy()))
            return x.copy()

        return run

    body = "%g : Float(1, 4) = test.carried::Keep(%h)\n" + STEP + "%f : Float(1, 4) = onnx::Sub(%d, %g)\n-> (%go, %f)"
    after = AGAIN.format("y_h") + "%z : Float(1, 4) = onnx::Neg(%first)\nreturn (%e, %z)"
    model = model_of(graph("", "h=first", body, after))
    for _ in range(RUNS):
        model.run(feeds_of(iterations))
        assert len(kept) == iterations
        for array, before in kept:
            np.testing.assert_array_equal(array, before)
        kept.clear()


@pytest.mark.parametrize("iterations", ITERATIONS)
def test_a_function_lends_nothing_that_its_caller_may_write(iterations: int):
    text = """
graph(%n : int, %x : Float(4)):
  %f : Function = prim::Constant[name="f"]()
  %y : Float(4), %first : Float(4) = prim::CallFunction(%f, %n, %x)
  %z : Float(4) = onnx::Neg_(%y)
  return (%z, %first)

graph f(%n : int, %x : Float(4)):
  %go : bool = prim::Constant[value=True]()
  %a : Float(4) = onnx::Softsign(%x)
  %b : Float(4) = prim::Loop(%n, %go, %a)
    block0(%i : int, %h : Float(4)):
      %d : Float(4) = onnx::Relu(%h)
      -> (%go, %d)
  return (%b, %a)
"""
    check(text, n=iterations, x=X[0])


# -- classes ----------------------------------------------------------------------


def test_a_result_shows_what_the_loop_began_with_but_is_no_part_of_it():
    main = module_of(graph("", "h=first", STEP + "-> (%go, %d)", "return (%y_h, %first)"), {"k": WEIGHT}).main
    db = analyze(main, noalias=main.inputs)
    apart = analyze(main, noalias=main.inputs, loops_apart=True)
    storage, joined = Storage(db, apart), Storage(db)
    first, result = main.value("first"), main.value("y_h")
    assert joined.of(first) == joined.of(result)
    assert storage.of(first) != storage.of(result)
    assert storage.of(first) in storage.shown(result)
    assert storage.of(result) not in storage.shown(first)


def test_what_is_in_one_tuple_with_a_result_shows_nothing_of_the_loop():
    text = graph("", "h=first", STEP + "-> (%go, %d)", TUPLE.format("y_h", "w") + UNPACKED + "return (%t, %q)")
    main = module_of(text, {"k": WEIGHT}).main
    storage = Lowerer(main, guarded=True).storage
    made = {storage.of(main.value(name)) for name in ("first", "d")}
    assert storage.of(main.value("w")) == storage.of(main.value("y_h"))
    for name in ("w", "q"):
        assert storage.shown(main.value(name)) == {storage.of(main.value("w"))}
    for name in ("y_h", "p", "t"):
        assert storage.shown(main.value(name)) == {storage.of(main.value("w")), *made}
