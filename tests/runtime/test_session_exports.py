"""Sessions with models as exporters write them: merged encoder-decoders, caches that pass through a step."""

import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.ir import parse_graph
from tests.graphs import ir, typed_ir
from tests.runtime.helpers import f32

MERGED = ir("""
    use: Bool(); x: Float(batch, s, 4); enc: Float(batch, n, 4); past_key: Float(BATCH, out, 4) -> y, present_key
    y["Float(batch, s, *)"], present_key["Float(*, *, 4)"] = prim.If(use)
    with block():
        dummy: Float(0, 1, 4) = prim.Constant(value=tensor([]))
        t: "Float(*, 4, *)" = Transpose(past_key, perm=[0, 2, 1]); a: "Float(*, *, *)" = MatMul(x, t)
        yield a, dummy
    with block():
        k: "Float(*, *, 4)" = Neg(enc); u: "Float(*, 4, *)" = Transpose(k, perm=[0, 2, 1])
        b: "Float(*, *, *)" = MatMul(x, u); yield b, k
""")
"""The branch that uses the encoder's keys leaves them out, as optimum's merged decoders do."""


def compiled(text: str, passes: str = "default") -> irc.CompiledModel:
    return irc.compile(parse_graph(text), passes)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


# -- what is left out -----------------------------------------------------------


@pytest.mark.parametrize("passes", ["default", "none"])
@pytest.mark.parametrize(("batch", "length"), [("batch", 6), ("batch", 1), ("past_batch", 6)])
def test_what_a_branch_leaves_out_stays_what_it_was(batch, length, passes):
    session = irc.Session(compiled(MERGED.replace("BATCH", batch), passes))
    feeds = {"x": ones(2, 1, 4), "enc": ones(2, length, 4)}
    given = {"past_key": ones(2, 0, 4)}
    first = session.run({**feeds, **given, "use": np.array(False)})["y"]
    key = session.caches["past_key"]
    for _ in range(3):
        found = session.run({**feeds, "use": np.array(True)})
        np.testing.assert_array_equal(found["y"], first)
        assert found["present_key"].shape == (0, 1, 4), "an output is what the model gives"
        assert np.shares_memory(session.caches["past_key"], key)


def test_what_a_step_is_given_and_leaves_out_is_held_as_a_copy():
    session = irc.Session(compiled(MERGED.replace("BATCH", "batch")))
    feeds, key = {"x": ones(1, 1, 4), "enc": ones(1, 5, 4), "use": np.array(True)}, ones(1, 3, 4)
    session.run({**feeds, "past_key": key})
    key[:] = 7
    np.testing.assert_array_equal(session.caches["past_key"], ones(1, 3, 4))
    assert not session.caches["past_key"].flags.writeable
    session.run({**feeds, "enc": ones(1, 2, 4), "use": np.array(False)})
    np.testing.assert_array_equal(session.caches["past_key"], -ones(1, 2, 4))


@pytest.mark.parametrize("passes", ["default", "none"])
def test_a_model_may_empty_its_caches(passes):
    text = ir("""
        clear: Bool(); x: Float(1, s, 4); past_0: Float(1, p, 4); past_1: Float(p1, 4) -> present_0, present_1
        present_0["Float(*, *, 4)"], present_1["Float(*, 4)"] = prim.If(clear)
        with block():
            none: Float(1, 0, 4) = prim.Constant(value=tensor([]))
            none_1: Float(0, 4) = prim.Constant(value=tensor([])); yield none, none_1
        with block():
            a: "Float(*, *, 4)" = Concat(past_0, x, axis=1); rows: "Float(*, 4)" = Reshape(a, [-1, 4]); yield a, rows
    """)
    session = irc.Session(compiled(text, passes), {"past_0": "present_0", "past_1": "present_1"})
    lengths = []
    for clear in (False, False, True, False):
        session.run({"clear": np.array(clear), "x": ones(1, 2, 4)})
        lengths.append([session.caches["past_0"].shape[1], session.caches["past_1"].shape[0]])
    assert lengths == [[2, 2], [4, 4], [0, 0], [2, 2]]


def test_errors_say_that_the_last_step_left_what_does_not_fit():
    text = ir(
        "x: Float(s); past_0, past_1: Float(p)",
        "present_0: 'Float(*)' = Concat(past_0, x, axis=0); present_1: 'Float(*)' = Identity(x)",
        "present_0, present_1",
    )
    session = irc.Session(compiled(text))
    session.run({"x": f32(1)})
    session.run({"x": f32(1)})
    with pytest.raises(Error, match=r"^IRC414: .*'p' is 1 here \(axis 0\), but 2 in.*; the last step returned it so"):
        session.run({"x": f32(1)})


# -- what passes through --------------------------------------------------------


def test_zeros_that_a_first_step_passes_on_can_be_written_by_nobody():
    text = "graph(%x : Float(2), %past_0 : Float(2)):\n  return (%past_0)"
    session = irc.Session(compiled(text), {"past_0": "past_0"})
    zeros = session.run({"x": f32(1, 2)})["past_0"]
    assert not zeros.flags.writeable
    np.testing.assert_array_equal(session.run({"x": f32(1, 2)})["past_0"], 0)


def test_what_a_step_writes_to_is_a_copy():
    text = typed_ir("x, past_0: Float(2)", "y = aten.add_(past_0, x, 1)", "y")
    session = irc.Session(compiled(text), {"past_0": "y"})
    outs = [session.run({"x": f32(1, 2)})["y"] for _ in range(3)]
    np.testing.assert_array_equal(outs, [f32(1, 2), f32(2, 4), f32(3, 6)])
