"""Recurrent layers by native loops, against the interpreter's."""

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from tests.effort import examples
from tests.models import onnx_model
from tests.native.guarded import END, guarded

pytest.importorskip("llvmlite")

import irc
from irc.native.inner_loops import LOOPS
from irc.runtime.bounds import CURRENT
from irc.runtime.kernels.recurrent import Cells
from irc.runtime.kernels.support import as_constant
from irc.runtime.limits import Limits
from irc.runtime.threads import share

Array = np.ndarray[Any, Any]

SINGLE = np.dtype("f4")
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
CELLS = {"lstm": 4, "gru": 3, "late gru": 3, "rnn": 1}
QUANTIZED = "quantized lstm"


def layer(op: str, sizes: tuple[int, int, int, int], directions: int, has_lengths: bool, **attributes: Any) -> Any:
    """A model of one layer with random weights, of (steps, batch, inputs, hidden) ``sizes``, and inputs for it."""
    steps, batch, inputs, hidden = sizes
    rng = np.random.default_rng(3)
    gates = GATES[op]
    shapes = {
        "w": (directions, gates * hidden, inputs),
        "r": (directions, gates * hidden, hidden),
        "b": (directions, 2 * gates * hidden),
    }
    bound = hidden**-0.5
    weights = {name: rng.uniform(-bound, bound, shape).astype("f4") for name, shape in shapes.items()}
    states = ["h", "c"][: 2 if op == "LSTM" else 1]
    feeds: dict[str, Array] = {"x": rng.standard_normal((steps, batch, inputs)).astype("f4")}
    feeds |= {name: rng.standard_normal((directions, batch, hidden)).astype("f4") for name in states}
    if has_lengths:
        feeds["lengths"] = rng.integers(0, steps, batch, np.int32, endpoint=True)
    outputs = ["y", *[f"last_{name}" for name in states]]
    given = attributes.pop("direction", "forward")
    direction = "bidirectional" if directions == 2 else given
    operands = ["x", *shapes, "lengths" if has_lengths else "", *states]
    node = helper.make_node(op, operands, outputs, hidden_size=hidden, direction=direction, **attributes)
    return onnx_model(node, feeds, outputs, weights, 17), feeds


def check(model: onnx.ModelProto, feeds: dict[str, Array]) -> None:
    native, plain = (irc.compile(model, backend=backend) for backend in ("native", "numpy"))
    for _ in range(2):
        found, expected = native.run(feeds), plain.run(feeds)
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=2e-5, atol=2e-6)


@examples(80)
@given(
    st.sampled_from([("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1}), ("RNN", {})]),
    st.tuples(st.integers(1, 7), st.integers(1, 4), st.integers(1, 9), st.sampled_from([1, 3, 15, 16, 33, 64, 70])),
    st.integers(1, 2),
    st.booleans(),
    st.booleans(),
)
def test_layers(cell, sizes, directions, has_lengths, is_reverse):
    op, attributes = cell
    direction = {"direction": "reverse"} if is_reverse else {}
    check(*layer(op, sizes, directions, has_lengths, **attributes, **direction))


def spread(x: Array, apart: int) -> Array:
    """``x`` with gaps between the elements of its first axis, or backwards in memory."""
    made = np.zeros((abs(apart) * (len(x) - 1) + 1, *x.shape[1:]), x.dtype)[::apart]
    made[...] = x
    return made


def recur(
    kind: str, steps: int, batch: int, hidden: int, constant: Any = as_constant, zero: int = 0, apart: int = 1
) -> Any:
    """What a loop makes of random operands: the result, the states.

    Steps are so many times as far ``apart`` as they need be, backwards if that is negative.
    """

    def wrap(x: Array) -> Array:
        return guarded(x, END) if END else x

    rng = np.random.default_rng(5)
    gates = CELLS.get(kind, 4)
    bound = hidden**-0.5
    share = wrap(spread(rng.standard_normal((steps, batch, gates * hidden)).astype("f4"), apart))
    r = constant(wrap(rng.uniform(-bound, bound, (1, gates * hidden, hidden)).astype("f4")))
    late = rng.uniform(-bound, bound, hidden).astype("f4")
    cells = Cells(kind, r, 0, late)
    if kind == QUANTIZED:
        r = constant(wrap(rng.integers(-128, 128, (1, hidden, gates * hidden), np.int8)))
        cells = Cells(kind, r, 0, np.full(gates * hidden, bound / 100, SINGLE), constant(np.full(1, zero, np.int8)))
    lengths = rng.integers(0, steps, batch, np.int64, endpoint=True)
    lengths[1:2] = lengths[:1]  # two that are equally long run together
    lengths = wrap(lengths)
    states = [wrap(rng.standard_normal((batch, hidden)).astype("f4")) for _ in range(2)]
    out = wrap(spread(np.full((steps, batch, hidden), 9, SINGLE), apart))
    states = states[: 2 if gates == 4 else 1]
    compute = LOOPS.recurrence(cells, share, out)
    return compute is not None and compute(share, lengths, states, out), out, states


@pytest.mark.parametrize("kind", CELLS)
def test_results_do_not_depend_on_threads(kind):
    _, one, states = recur(kind, 40, 6, 130)
    before = CURRENT.scope.share
    CURRENT.scope.share = lambda pieces, piece: share(pieces, piece, 2)
    try:
        _, two, others = recur(kind, 40, 6, 130)
    finally:
        CURRENT.scope.share = before
    assert [x.tobytes() for x in (one, *states)] == [x.tobytes() for x in (two, *others)]


@pytest.mark.parametrize("apart", [-1, 2, -3])
@pytest.mark.parametrize("hidden", [1, 3, 15, 20, 64, 70])
@pytest.mark.parametrize("kind", [*CELLS, QUANTIZED])
def test_steps_may_lie_anywhere(kind, hidden, apart):
    """Of a quantized layer, weights have 8 bits, or 9 less a zero point."""
    sizes, zero = (5, 1 if kind == QUANTIZED else 3, hidden), apart % 2
    _, out, states = recur(kind, *sizes, zero=zero)
    done, found, others = recur(kind, *sizes, zero=zero, apart=apart)
    assert done
    for value, other in zip((out, *states), (found, *others), strict=True):
        np.testing.assert_array_equal(value, other)


def test_weights_that_may_change_are_left_to_products():
    assert recur("lstm", 3, 2, 5, constant=lambda r: r)[0] is False


@pytest.mark.parametrize("kind", CELLS)
def test_states_may_lie_in_any_order(kind):
    model, feeds = layer("LSTM" if kind == "lstm" else "RNN" if kind == "rnn" else "GRU", (4, 5, 3, 8), 2, False)
    check(model, {name: np.asfortranarray(value) for name, value in feeds.items()})


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize(("op", "late"), [("LSTM", 0), ("GRU", 0), ("GRU", 1), ("RNN", 0)])
def test_a_run_like_an_earlier_one_gives_the_same_bits(op, late, directions):
    """A layer remembers what computed its latest operands; shapes, orders, states and limits vary from run to run."""
    attributes = {"linear_before_reset": late} if op == "GRU" else {}
    model, feeds = layer(op, (4, 2, 5, 20), directions, False, **attributes)
    for value in model.graph.input:
        value.type.tensor_type.ClearField("shape")
    states = {name: value for name, value in feeds.items() if name != "x"}
    x = feeds["x"]
    longer, single = np.concatenate([x, -x]), {name: value[:, :1] for name, value in states.items()}
    runs = [
        feeds,
        {"x": longer, **states},
        {"x": x[:, :1], **single},
        {"x": x[:1, :1], **single},
        {"x": np.asfortranarray(x), **{name: np.asfortranarray(value) for name, value in states.items()}},
        {"x": -x, **states},
    ]
    compiled, plain = (irc.compile(model, backend=backend) for backend in ("native", "numpy"))
    for operands in (*runs, *[each for each in runs for _ in range(3)]):
        first = irc.compile(model, backend="native").run(operands)
        kept = {name: value.copy() for name, value in operands.items()}
        for limits in (None, None, Limits(bytes=1 << 26)):
            found = compiled.run(operands, limits=limits)
            for name, value in first.items():
                np.testing.assert_array_equal(found[name], value)
        for name, value in plain.run(operands).items():
            np.testing.assert_allclose(first[name], value, rtol=2e-5, atol=2e-6)
        for name, value in kept.items():  # no state is written where it was given
            np.testing.assert_array_equal(operands[name], value)


def test_states_of_another_shape_are_refused_after_a_run():
    model, feeds = layer("LSTM", (4, 2, 5, 6), 1, False)
    for value in model.graph.input:
        value.type.tensor_type.ClearField("shape")
    compiled = irc.compile(model, backend="native")
    for _ in range(2):
        compiled.run(feeds)
        with pytest.raises(irc.Error, match="IRC421"):
            compiled.run({**feeds, "c": feeds["c"][:, :1]})
        with pytest.raises(irc.Error, match="IRC442"):
            compiled.run(feeds, limits=Limits(bytes=1 << 8))


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("hidden", [5, 64, 100])
@pytest.mark.parametrize("zeros", [1, 3])
def test_quantized_lstm(zeros, hidden, columns, batch):
    """Between quantized states that differ by a step, results differ by less than a hundredth.

    Less a zero point, weights have 8 bits or 9.
    """
    rng = np.random.default_rng(7)
    steps, inputs, directions = 6, 8, 2
    size = (directions, 4 * hidden) if columns else (directions,)
    weights = {
        "w": rng.integers(-128, 128, (directions, inputs, 4 * hidden), np.int8),
        "r": rng.integers(-128, 128, (directions, hidden, 4 * hidden), np.int8),
        "ws": rng.uniform(0.001, 0.004, size).astype("f4"),
        "wz": rng.integers(1 - zeros, zeros, size, np.int8),
        "rs": rng.uniform(0.001, 0.002, size).astype("f4"),
        "rz": rng.integers(1 - zeros, zeros, size, np.int8),
    }
    operands = ["x", "w", "r", "", "", "", "", "", "ws", "wz", "rs", "rz"]
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        operands,
        ["y", "h", "c"],
        domain="com.microsoft",
        hidden_size=hidden,
        direction="bidirectional",
    )
    graph = helper.make_graph(
        [node],
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, batch, inputs])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "yhc"],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    x = rng.standard_normal((steps, batch, inputs)).astype("f4")
    native, plain = (irc.compile(model, backend=backend).run({"x": x}) for backend in ("native", "numpy"))
    for name, value in plain.items():
        np.testing.assert_allclose(native[name], value, atol=1e-2)
