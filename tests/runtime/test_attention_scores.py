"""The most frequent forms of attention take fewer passes over scores, whether these are cut or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from irc.runtime.execution import Counters, Run, Watch
from irc.runtime.fused import scores
from irc.runtime.fused.attention import Attention
from irc.runtime.plan import Plan
from tests.runtime.attention_groups import Array, close, group, make_blocks_small, numbers, one_by_one, outcome
from tests.runtime.helpers import run_plan, the_only


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    make_blocks_small(monkeypatch)


FORMS = {
    "plain": ("", ""),
    "multiplied": ("%f = onnx::Mul(%s, %c)", "c"),
    "multiplied from the left": ("%f = onnx::Mul(%c, %s)", "c"),
    "divided": ("%f = onnx::Div(%s, %c)", "c"),
    "masked": ("%f = onnx::Add(%s, %m)", "m"),
    "masked, scaled and masked": ("%a = onnx::Mul(%s, %c)\n%b = onnx::Add(%m, %a)\n%f = onnx::Add(%b, %n)", "c m n"),
    # What follows is computed operator by operator.
    "divided from the left": ("%f = onnx::Div(%c, %s)", "c"),
    "scaled twice": ("%a = onnx::Mul(%s, %c)\n%f = onnx::Mul(%a, %c)", "c"),
    "scaled behind the mask": ("%a = onnx::Add(%s, %m)\n%f = onnx::Mul(%a, %c)", "m c"),
    "scaled by a row": ("%f = onnx::Mul(%s, %m)", "m"),
    "weakened": ("%f = onnx::Tanh(%s)", ""),
}
SOFTMAXES = ["onnx::Softmax", "irc::masked_softmax"]
SMALL, LARGE = ((2, 3, 1, 8), (2, 3, 8, 5), (2, 3, 5, 4)), ((2, 3, 20, 8), (2, 3, 8, 30), (2, 3, 30, 4))


def of_form(form: str, softmax: str = "onnx::Softmax") -> tuple[Plan, list[str]]:
    """A group, and the names of its inputs."""
    between, extra = FORMS[form]
    scores = "f" if between else "s"
    members = f"%s = onnx::MatMul(%q, %k)\n{between}\n%p = {softmax}[axis=-1](%{scores})\n%y = onnx::MatMul(%p, %v)"
    names = ["q", "k", "v", *extra.split()]
    return group(members, " ".join(names)), names


def inputs_for(names: list[str], shapes: Any, dtype: Any = np.float32) -> list[Array]:
    """Arrays: two masks, of which the second one hides all keys of the first row, and a number."""
    q, k, v = numbers(*shapes, dtype=dtype)
    m, n = numbers((shapes[1][-1],), (shapes[0][-2], shapes[1][-1]), dtype=dtype)
    n[:1] = -np.inf
    found = {"q": q, "k": k, "v": v, "m": m, "n": n, "c": np.array([0.3], dtype)}
    return [found[name] for name in names]


@pytest.mark.parametrize("shapes", [SMALL, LARGE])
@pytest.mark.parametrize("softmax", SOFTMAXES)
@pytest.mark.parametrize("form", FORMS)
def test_forms_of_attention(form, softmax, shapes):
    """Small scores at once, large ones in blocks: rows without any key are no numbers, or zeros."""
    plan, names = of_form(form, softmax)
    for dtype in (np.float32, np.float64, np.float16):
        inputs = inputs_for(names, shapes, dtype)
        wanted = one_by_one(plan, *inputs)
        (found,), counters = run_plan(plan, *inputs)
        close(found, wanted)
        assert counters.kernels == len(the_only(Attention, plan).operations)
        if "n" in names:
            assert (np.isnan(found) if softmax == "onnx::Softmax" else found == 0)[..., :1, :].all()
            assert np.isfinite(found[..., 1:, :]).all()


@pytest.mark.parametrize("form", ["multiplied", "masked", "masked, scaled and masked"])
def test_no_number_in_values_stays(form):
    """Only what the softmax has made is 0 where that is no number."""
    plan, names = of_form(form, "irc::masked_softmax")
    for shapes in (SMALL, LARGE):
        inputs = inputs_for(names, shapes)
        inputs[2][0, 0, 0, 0] = np.nan
        close(run_plan(plan, *inputs)[0][0], one_by_one(plan, *inputs))


def test_scores_have_two_passes_less(monkeypatch):
    """What is scaled is the queries, what is divided is the result."""
    plan, names = of_form("masked, scaled and masked")
    for shapes in (SMALL, LARGE):
        inputs = inputs_for(names, shapes)
        run_plan(plan, *inputs)
        seen: list[str] = []
        with monkeypatch.context() as patch:
            for name in ("multiply", "divide", "add", "subtract", "exp"):
                ufunc = getattr(np, name)
                patch.setattr(np, name, _counting(ufunc, name, shapes[1][-1], seen))
            found = the_only(Attention, plan)
            assert found._scores is not None
            frame = [None, *inputs]
            found._scores.compute([frame[slot] for slot in found.slots])
        assert seen == ["add", "add", "subtract", "exp"]


def _counting(ufunc: np.ufunc, name: str, keys: int, seen: list[str]) -> Any:
    class Counting:
        reduce = ufunc.reduce

        def __call__(self, *operands: Any, **given: Any) -> Any:
            if any(isinstance(x, np.ndarray) and x.ndim == 4 and x.shape[-1] == keys for x in operands):
                seen.append(name)
            return ufunc(*operands, **given)

    return Counting()


VECTORS = {"n": np.zeros((), np.float32), "v": np.ones((5, 4), np.float32)}


@pytest.mark.parametrize(
    "change",
    [
        {"c": np.ones(2, np.float32)},
        {"c": np.ones(1, np.float64)},
        {"m": np.ones((2, 1, 1, 1, 5), np.float32)},
        {"m": np.ones(4, np.float32)},
        {"m": np.ones(5, np.float64)},
        {"k": np.ones((1, 3, 8, 5), np.float32)},
        {"k": np.ones((2, 3, 8, 0), np.float32), "v": np.ones((2, 3, 0, 4), np.float32), "m": np.float32(1)},
        {"v": np.ones((5, 4), np.float32)},
        {"v": np.ones((2, 3, 6, 4), np.float32)},
        {"v": np.ones((2, 3, 5, 4), np.float64)},
        {"q": np.ones(8, np.float32)},
        {**VECTORS, "q": np.ones(8, np.float32), "k": np.ones((8, 5), np.float32)},
        {**VECTORS, "q": np.ones((5, 8), np.float32), "k": np.ones(8, np.float32)},
        {"q": np.ones((2, 3, 1, 9), np.float32)},
        {"k": [1.0]},
        {"v": 3},
    ],
)
def test_what_does_not_suit_is_left_to_the_operators(change):
    plan, names = of_form("masked, scaled and masked")
    inputs = dict(zip(names, inputs_for(names, SMALL)))
    inputs["n"] = np.float32(0)
    inputs = {**inputs, **change}
    wanted = outcome(lambda: one_by_one(plan, *inputs.values()))
    found = outcome(lambda: run_plan(plan, *inputs.values())[0][0])
    assert type(found) is type(wanted)
    if isinstance(wanted, str):
        assert found == wanted
    else:
        close(found, wanted)


@pytest.mark.parametrize("shapes", [SMALL, LARGE])
def test_profiles_have_each_operator_of_any_form(shapes):
    plan, names = of_form("masked, scaled and masked")
    feeds = inputs_for(names, shapes)

    class Listening(Watch):
        in_blocks = True

        def __init__(self) -> None:
            self.open: list[Any] = []
            self.parts: list[str] = []
            self.ended: list[str] = []

        def begin_part(self, node: Any) -> None:
            assert not self.open
            self.open.append(node)

        def end_part(self, node: Any) -> None:
            assert self.open.pop() is node
            self.parts.append(node.output.name)

        def end_parts(self, node: Any, in_place: bool) -> None:
            self.ended.append(node.output.name)

    watch = Listening()
    with np.errstate(all="ignore"):
        (found,) = plan.call(feeds, run := Run(Counters(), watch, 1))
    np.testing.assert_array_equal(found, run_plan(plan, *feeds, threads=1)[0][0])
    blocks = max(1, run.counters.tiles)
    assert watch.parts == ["a", "s", "b", "f", "p", "y"] * blocks and watch.ended == ["y"] and not watch.open
    assert blocks > 1 or shapes is SMALL


STEPS = [
    ("Mul '%a'", r"float32\[{scores}\], float32\[1\]"),
    ("MatMul '%s'", r"float32\[2, 3, {rows}, 8\], float32\[2, 3, 8, {keys}\]"),
    ("Add '%b'", r"float32\[{keys}\], float32\[{scores}\]"),
    ("Add '%f'", r"float32\[{scores}\], float32\[{rows}, {keys}\]"),
    ("Softmax '%p'", r"float32\[{scores}\]"),
    ("MatMul '%y'", r"float32\[{scores}\], float32\[2, 3, {keys}, 4\]"),
]


@pytest.mark.parametrize("shapes", [SMALL, LARGE])
@pytest.mark.parametrize("number", range(len(STEPS)))
def test_an_operator_that_fails_is_named(number, shapes, monkeypatch):
    """With what it has for inputs in the graph, of which these are not computed, and not with the group's."""
    plan, names = of_form("masked, scaled and masked")
    inputs = inputs_for(names, shapes)
    (expected,), _ = run_plan(plan, *inputs)
    seen: list[Any] = []

    def step(function: Any) -> Any:
        def counted(*operands: Any, **given: Any) -> Any:
            seen.append(function)
            if len(seen) > number:
                raise MemoryError("just now")
            return function(*operands, **given)

        return counted

    with monkeypatch.context() as patch:
        found = the_only(Attention, plan)
        failing = found._scores._replace(scaling=step(np.multiply))  # type: ignore[reportOptionalMemberAccess]
        patch.setattr(found, "_scores", failing)
        patch.setattr(found, "_at_once", failing)
        patch.setattr(scores, "matrix_product", step(scores.matrix_product))
        if shapes is SMALL:
            patch.setattr(np, "matmul", step(np.matmul))
        patch.setattr(np, "add", step(np.add))
        patch.setattr(scores, "_softmax", step(lambda *_: None))
        rows, keys = shapes[0][-2], shapes[1][-1]
        name, operands = STEPS[number]
        operands = operands.format(scores=f"2, 3, {rows}, {keys}", rows=rows, keys=keys)
        with pytest.raises(Error, match=f"out of memory: just now; inputs: {operands}$") as caught:
            run_plan(plan, *inputs, threads=1)
    assert (caught.value.code, caught.value.where) == ("IRC403", f"onnx::{name}")
    np.testing.assert_array_equal(run_plan(plan, *inputs)[0][0], expected)
