"""Loop-carried values may be overwritten in every iteration, even if initial values are needed later or are inputs."""

from collections.abc import Callable, Collection
from itertools import accumulate
from textwrap import indent
from typing import Any, NamedTuple

import numpy as np
import pytest

from irc.alias import analyze
from irc.ir import Module, Node
from irc.passes import PassManager
from irc.runtime.kernels.registry import kernel
from irc.runtime.model import CompiledModel
from irc.runtime.plan import Lowerer
from irc.runtime.storage import Storage
from tests.graphs import typed_ir
from tests.programs.interpreter import interpret
from tests.runtime.helpers import boolean, f32, i64, module_of

RUNS = 3  # as it comes, planned, planned again
ITERATIONS = [0, 1, 2, 7]
X = f32([-1, 2, -3, 0.5])
WEIGHT = f32([0.5, -4, 1, 3])

BEGIN = "go: Bool() = prim.Constant(value={1}); two: Long() = prim.Constant(value={2}); first = Softsign(x); w = Neg(x)"
STEP = "d = Relu(Add(w, h))"
INITIAL = ("first", "x", "k")


class Case(NamedTuple):
    """A graph with one loop, which is tried as ``onnx::Loop`` and as ``prim::Loop``.

    Attributes:
        what: its name.
        body: the statements of an iteration, which gives ``passed`` on.
        after: what follows the loop, whose results are ``y_h`` for what is carried as ``h``.
        returned: the outputs.
        carried: what begins as what: ``h=first``, or several of these.
        in_place: how many results are in place after ``n`` iterations, or 0 if that is negative; "" if any number.
        copied: how many values are copied as they leave, because something else has them too; "" if any number.
        before: what stands before the loop.
        only: the kind of the loop, if a body needs numbers of iterations that are tensors.
        groups: subgraphs.
    """

    what: str
    body: str = STEP
    passed: str = "d"
    after: str = ""
    returned: str = "y_h, first"
    carried: str = "h=first"
    in_place: str = ""
    copied: str = ""
    before: str = ""
    only: str = ""
    groups: dict[str, tuple[str, str, str]] = {}  # noqa: RUF012

    def text(self, loop: str) -> str:
        pairs = [pair.split("=") for pair in self.carried.split()]
        params = ", ".join(f"{h}='Float(1, 4)'" for h, _ in pairs)
        leading = "i='Long()', still='Bool()'" if loop == "onnx.Loop" else "i=int"
        body = f"""{BEGIN}; {self.before}
{", ".join(f"y_{h}" for h, _ in pairs)} = {loop}(n, go, {", ".join(value for _, value in pairs)})
with block({leading}, {params}):
{indent(self.body, "    ")}
    yield go, {self.passed}
{self.after}
"""
        body = body.replace("LOOP", loop).replace("NUMBER", leading.replace("i=", "j=").replace("still", "on"))
        return typed_ir("n: Long(); c: Bool(); x: Float(1, 4); k: @Float(1, 4)", body, self.returned, **self.groups)

    def module(self, loop: str = "onnx.Loop") -> Module:
        return module_of(self.text(loop), {"k": WEIGHT})


def feeds_of(iterations: int) -> dict[str, np.ndarray]:
    return {"n": i64(iterations), "c": boolean(True), "x": X.copy()}


def check(
    module: Module, given: dict[str, Any], donate: Collection[str] = (), wanted: list[Any] | None = None
) -> tuple[list[int], list[int]]:
    """How many results were in place in each run on NumPy, and how many bytes were copied.

    Results are ``wanted``, if not None, or those of an interpreter that reuses nothing, and stay as they were; those of
    native code, too, which may run all iterations at once. Arenas are overwritten between runs, so that nothing may
    refer to them. The weight and the inputs stay, too.
    """
    if wanted is None:
        wanted = interpret(module.main, [np.array(given[v.name]) for v in module.main.inputs])
    for backend in ("auto", "numpy"):
        model = CompiledModel(module, backend=backend)
        counts: tuple[list[int], list[int]] = [], []
        left: list[dict[str, Any]] = []
        for _ in range(RUNS):
            feeds = {name: np.array(x) if isinstance(x, np.ndarray) else x for name, x in given.items()}
            left.append(model.run(feeds, donate=donate))
            counts[0].append(model.counters.in_place)
            counts[1].append(model.counters.copied_bytes)
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


FRESH = "2 * n - 1"
"""Only the first write is fresh."""

VIEWS = "v = Reshape(Reshape(h, [4]), [1, 4]); u = Transpose(v, perm=[0, 1]); d = Add(g, h)"
NESTED = """p = prim.Loop(n, go, {})
with block(j=int, a='Float(1, 4)'): f = Relu(Add(w, a)); yield go, {}
d = {}"""
TUPLE = "t: '(Tensor, Tensor)' = prim.TupleConstruct({}, {})"
UNPACKED = "; p, q = prim.TupleUnpack(t)"
TOGETHER = {
    "a tuple": TUPLE,
    "a list": "t: 'Tensor[]' = prim.ListConstruct({}, {})",
    "a list in a tuple": "l: 'Tensor[]' = prim.ListConstruct({}, {}); "
    "t: '(Tensor[], Tensor[])' = prim.TupleConstruct(l, l)",
    "a tuple of a branch": "t: '(Tensor, Tensor)' = prim.If(c)\n"
    "with block(): u: '(Tensor, Tensor)' = prim.TupleConstruct({0}, {1}); yield u\n"
    "with block(): v: '(Tensor, Tensor)' = prim.TupleConstruct({1}, {0}); yield v",
}
GROUP = {"FusionGroup_0": ("y, first: Float(1, 4)", "z = Neg(first); e = Softmax(Reshape(y, [4]))", "z, e")}
LOOP_IN_GROUP = """y = prim.Loop(n, go, x)
with block(i=int, h='Float(1, 4)'): yield go, Add_(h, h)"""
WRITING_GROUP = {"FusionGroup_0": ("n: Long(); go: Bool(); x: Float(1, 4)", LOOP_IN_GROUP, "")}

CASES = [
    # the initial value is kept; Softmax never writes over its operand: it reads a value once more
    Case("it is returned", in_place=FRESH),
    Case("it is read later", after="e = Softmax(first)", returned="y_h, e", in_place=FRESH),
    Case("a view of it is returned", before="v = Reshape(first, [4])", returned="y_h, v", in_place=FRESH),
    Case("it is a view", before="v = Reshape(first, [1, 4])", carried="h=v", in_place=FRESH),
    *[Case(f"it is {kind}", carried=f"h={kind}", returned="y_h", in_place=FRESH) for kind in ("x", "k", "w")],
    *[
        Case(f"it is {kind}, read later", carried=f"h={kind}", after=f"e = Softmax({kind})", returned="y_h, e",
             in_place=FRESH)
        for kind in ("x", "k")
    ],
    Case("the result is read", after="e = Softmax(y_h)", returned="e, first", in_place=FRESH),
    Case("nothing needs it later", returned="y_h", in_place="2 * n"),
    # several values are carried
    *[
        Case("two values begin as one", f"{STEP}; f = Sub(Abs(g), w)", "d, f", "", returned, "h=first g=first",
             "2 * (2 * n - 1)")
        for returned in ("y_h, y_g", "y_h, y_g, first")
    ],
    Case("values are swapped", f"{STEP}; f = Neg(g)", "f, d", "", "y_h, y_g, first, x", "h=first g=x", "3 * n - 2"),
    *[
        Case("values are only swapped", "b = Add(g, h); d = Neg(f)", "g, d, h", "", f"y_h, y_g, y_f, {it}, w",
             f"h={it} g=w f={it}")
        for it in INITIAL
    ],
    *[
        Case(f"{what} is passed on", VIEWS, f"{what}, d", "z = Neg(y_h)", f"z, y_g, {it}", f"h={it} g={it}", "n - 1")
        for what in "hvu" for it in INITIAL
    ],
    *[
        Case(f"{value} is returned for two", f"{STEP}; f = Sub(d, g); r = d if c else h", f"{value}, {value}",
             f"z = Neg({written}); e = Softmax({read})", "z, e, first", "h=first g=x")
        for value in "fhgdr" for written, read in (("y_h", "y_g"), ("y_g", "y_h"))
    ],
    # branches, views, loops in the loop and after it
    *[
        Case(
            "a branch passes it on in some iterations",
            f"early = Less(i, 2); r = prim.If(early)\nwith block(): yield h\nwith block(): {STEP}; yield d", "r",
            "", f"y_h, {it}", f"h={it}", "2 * max(0, n - 2) - 1", only="onnx.Loop",
        )
        for it in INITIAL
    ],
    Case("a capture is passed on", f"{STEP}; early = Less(i, 2); r = w if early else d", "r", only="onnx.Loop"),
    Case("views are carried", "e = Relu(Reshape(Neg(Reshape(h, [4])), [1, 4])); v = Reshape(e, [1, 4])", "v",
         in_place=FRESH),
    *[
        Case(f"a loop in the loop begins with {it}", NESTED.format(it, passed, last), in_place=in_place)
        for it, last, fresh in (("h", "Neg(p)", 0), *[(it, "Sub(p, h)", 1) for it in ("h", "first", "k")])
        for passed, in_place in (("f", f"n * (2 * n + {1 - fresh}) - {1 - fresh}"), ("a", ""))
    ],
    Case("a later loop captures the result", returned="z",
         after="z = prim.Loop(two, go, first)\nwith block(j=int, g='Float(1, 4)'): yield go, Add(y_h, g)"),
    # without an iteration, the result is the initial value: whichever of them is needed longer
    *[
        Case(f"{written} is written", STEP, "d", f"z = Neg({written}); e = Softmax({read})", "z, e", f"h={it}")
        for it in ("first", "x")
        for written, read in (("y_h", "first"), ("first", "y_h"), ("y_h", "x"), ("x", "y_h"))
    ],
    Case("its place is in use as long as the result", after="t = Softmax(x); e = Softmax(y_h); f = Softmax(t)",
         returned="e, f"),
    Case("an operator reads both", after="z = Sub(first, y_h)", returned="z", in_place="2 * n", only="onnx.Loop"),
    Case("a view of the result in a group", after="z, e = FusionGroup_0(y_h, first)", returned="z, e", groups=GROUP),
    # in one container with something else
    *[
        Case(f"{container} is returned", after=text.format("y_h", "w"), returned="t", carried=f"h={it}",
             in_place=f"2 * n - {int(it != 'first')}", copied="0" if it == "first" else "not n")
        for container, text in TOGETHER.items() for it in INITIAL
    ],
    *[
        Case("it is in one tuple with the result", after=TUPLE.format(*members), returned="t", in_place=FRESH,
             copied="not n")
        for members in (("y_h", "first"), ("first", "y_h"))
    ],
    Case("results that are joined", after="l: 'Tensor[]' = prim.ListConstruct(y_h, w); z = cat(l, 0)", returned="z",
         carried="h=x", in_place=FRESH),
    *[
        Case(f"each iteration reads a tuple, and begins with {it}", "u, v = prim.TupleUnpack(t); b = Sub(Add(v, h), u)",
             "b", "", "y_h", f"h={it}", FRESH, "not n", TUPLE.format("first", "w") + UNPACKED)
        for it in ("first", "w", "p")
    ],
    *[
        Case(f"an iteration makes a tuple and returns {value}",
             f"{TUPLE.format('h', 'w')}; {STEP}{UNPACKED}; e = Mul(Sub(d, p), q)", value, "", f"y_h, {it}", f"h={it}")
        for value in "hpqe" for it in ("first", "w", "x")
    ],
    *[
        Case(f"a later loop begins with {it}", returned="t, z", after=f"{TUPLE.format('y_h', 'w')}{UNPACKED}\n"
             f"z = LOOP(n, go, {it})\nwith block(NUMBER, g='Float(1, 4)'): yield go, Neg(Add(g, g))")
        for it in ("y_h", "p", "q", "first")
    ],
    *[
        Case(f"{it} of a tuple is written", after=f"{TUPLE.format('y_h', 'w')}{UNPACKED}; z = Neg_({it})",
             returned="t, first", copied="not n")
        for it in "pq"
    ],
    # what is written is the initial value itself, if the loop makes no iteration: it cannot be borrowed
    Case("the loop writes it", "d = Neg_(h)"),
    Case("what follows writes it", after="z = Neg_(y_h)", returned="z, first"),
    Case("a loop in a group writes it", after="FusionGroup_0(two, go, y_h)", groups=WRITING_GROUP),
]  # fmt: skip


@pytest.mark.covering(1)
@pytest.mark.parametrize("n", ITERATIONS)
@pytest.mark.parametrize("loop", ["onnx.Loop", "prim.Loop"])
@pytest.mark.parametrize("case", CASES, ids=[f"{case.what}, {i}" for i, case in enumerate(CASES)])
def test_results_are_in_place_and_overwrite_nothing(case: Case, loop: str, n: int) -> None:
    in_place, copied = check(case.module(case.only or loop), feeds_of(n))
    if case.in_place:
        assert in_place == [max(0, eval(case.in_place, {"n": n, "max": max}))] * RUNS
    if case.copied:
        assert copied == [X.nbytes * eval(case.copied, {"n": n})] * RUNS


SCAN = """first = Softsign(x)
y, z = onnx.Scan(first, rows, num_scan_inputs=1, since_version=11)
with block(h='Float(1, 4)', r='Float(1, 4)'): d = Relu(Add(r, h)); yield d, d"""
OVER_BATCHES = """first = Softsign(x)
y = onnx.Scan(lengths, first, rows, num_scan_inputs=1, since_version=8)
with block(h='Float(4)', r='Float(4)'): d = Relu(Add(r, h)); yield d"""
BEGIN_AS_ONE = """first = Softsign(x)
y, z = onnx.Scan(first, first, rows, num_scan_inputs=1, since_version=11)
with block(h='Float(4)', g='Float(4)', r='Float(4)'): d = Add(g, Sub(h, r)); yield d, d"""
ROWS = np.linspace(-2, 2, 24, dtype=np.float32)
FIRST = X / (1 + np.abs(X))


def states(first: np.ndarray, rows: np.ndarray, step: Callable[..., np.ndarray]) -> list[np.ndarray]:
    return [*accumulate(rows, step, initial=first)][1:]


def scanned(inputs: str, body: str, outputs: str, wanted: list[np.ndarray], **feeds: np.ndarray) -> list[int]:
    return check(module_of(typed_ir(inputs, body, outputs), {}), feeds, wanted=wanted)[0]


def test_the_state_of_a_scan() -> None:
    rows = ROWS[:20].reshape(5, 1, 4)
    found = states(FIRST, rows, lambda h, r: np.maximum(r + h, 0))
    wanted = [found[-1], np.stack(found), FIRST]
    inputs = "x: Float(1, 4); rows: Float(5, 1, 4)"
    assert scanned(inputs, SCAN, "y, z, first", wanted, x=X, rows=rows) == [2 * 5 - 1] * RUNS


def test_the_state_of_a_scan_over_batches() -> None:
    """Sequences of several lengths; each begins with its slice of one state."""
    x, rows = np.concatenate([X, -X]), ROWS.reshape(2, 3, 4)
    first = x / (1 + np.abs(x))
    last = [states(first[b], rows[b, :n], lambda h, r: np.maximum(r + h, 0))[-1] for b, n in enumerate([3, 1])]
    inputs = "lengths: Long(2); x: Float(2, 4); rows: Float(2, 3, 4)"
    counts = scanned(inputs, OVER_BATCHES, "y, first", [np.stack(last), first], lengths=i64([3, 1]), x=x, rows=rows)
    assert counts == [(2 * 3 - 1) + (2 * 1 - 1)] * RUNS


def test_states_of_a_scan_that_are_one_value() -> None:
    rows = ROWS[:20].reshape(5, 4)
    last = states(FIRST[0], rows, lambda h, r: h + (h - r))[-1]
    inputs = "x: Float(4); rows: Float(5, 4)"
    scanned(inputs, BEGIN_AS_ONE, "y, z, first", [last, last, FIRST[0]], x=X[0], rows=rows)


def test_in_place_forms_of_what_an_iteration_makes_count_as_before() -> None:
    """The pass writes Relu over what Add made; nothing writes what the loop carries but Add, of itself."""
    for n in ITERATIONS:
        module = Case("").module()
        PassManager("in-place").run(module)
        assert check(module, feeds_of(n))[0] == [max(0, 2 * n - 1)] * RUNS


@pytest.mark.parametrize("iterations", ITERATIONS)
def test_what_unknown_code_is_given_in_an_iteration_is_not_overwritten(iterations: int) -> None:
    kept: list[tuple[np.ndarray, np.ndarray]] = []

    @kernel("test.carried::Keep")
    def keep(node: Node) -> Callable[..., Any]:
        def run(x: Any) -> Any:
            kept.append((x, x.copy()))
            return x.copy()

        return run

    body = f"g: Float(1, 4) = CALL(h); {STEP}; f = Sub(d, g)"
    text = Case("", body, "f", "e = Softmax(y_h); z = Neg(first)", "e, z").text("onnx.Loop")
    model = CompiledModel(module_of(text.replace("onnx::CALL", "test.carried::Keep"), {"k": WEIGHT}), backend="numpy")
    for _ in range(RUNS):
        model.run(feeds_of(iterations))
        assert len(kept) == iterations
        for array, before in kept:
            np.testing.assert_array_equal(array, before)
        kept.clear()


# -- classes ----------------------------------------------------------------------


def test_a_result_shows_what_the_loop_began_with_but_is_no_part_of_it() -> None:
    main = Case("").module().main
    db = analyze(main, noalias=main.inputs)
    apart = analyze(main, noalias=main.inputs, loops_apart=True)
    storage, joined = Storage(db, apart), Storage(db)
    first, result = main.value("first"), main.value("y_h")
    assert joined.of(first) == joined.of(result)
    assert storage.of(first) != storage.of(result)
    assert storage.of(first) in storage.shown(result)
    assert storage.of(result) not in storage.shown(first)


def test_what_is_in_one_tuple_with_a_result_shows_nothing_of_the_loop() -> None:
    main = Case("", after=TUPLE.format("y_h", "w") + UNPACKED, returned="t, q").module().main
    storage = Lowerer(main, guarded=True).storage
    made = {storage.of(main.value(name)) for name in ("first", "d")}
    assert storage.of(main.value("w")) == storage.of(main.value("y_h"))
    for name in ("w", "q"):
        assert storage.shown(main.value(name)) == {storage.of(main.value("w"))}
    for name in ("y_h", "p", "t"):
        assert storage.shown(main.value(name)) == {storage.of(main.value("w")), *made}
