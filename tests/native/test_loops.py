"""Loops whose iterations run at once: results, counters, when they end, and what runs step by step instead."""

import _thread
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import irc
from irc.ir import Array, parse_graph
from irc.native import iterations
from irc.runtime.control_flow import Stack
from irc.runtime.model import CompiledModel
from tests.graphs import ir, typed_ir
from tests.native.guarded import fresh, placed
from tests.native.test_tables import f32, models, same_runs

SCAN = typed_ir("""
    s: Float(7); x: Float(5, 7); k: Float(7) -> t, y, z
    t, y, z = Scan(s, x, num_scan_inputs=1, OPTIONSsince_version=16)
    with block(c=Float(7), r=Float(7)): a = Mul(c, k); b = Add(a, r); d = Tanh(b); e = Sub(d, c); yield d, e, c
""")


def scan_feeds(rows: int = 5) -> dict[str, Any]:
    return {"s": f32(7), "x": f32(rows, 7), "k": f32(7)}


@pytest.mark.parametrize(
    "options", ["", "scan_input_directions=[1], ", "scan_output_directions=[1, 0], ", "scan_output_axes=[1, -1], "]
)
def test_scans(options: str) -> None:
    model = same_runs(SCAN.replace("OPTIONS", options), *[scan_feeds() for _ in range(4)], exactly=False)
    assert model.counters.compiled == 1
    assert model.counters.units == 6


LOOP = typed_ir("""
    n: Long(); go: Bool(); s: Float(1, 6); most: Float(); w: Float(6, 6) -> t, y, j
    t, y, j = Loop(n, go, s)
    with block(i=Long(), c=Bool(), v=Float(1, 6)):
        p = MatMul(v, w); a = Abs(p); m = ReduceMax(a, keepdims=0); g = Less(m, most); d = Add(i, i); yield g, a, p, d
""")


@pytest.mark.parametrize("count", [1, 16, 17, 40, 1 << 60])
def test_loops_end_when_their_condition_says_so(count: int) -> None:
    w = 1.01 * np.linalg.qr(f32(6, 6))[0]
    feeds = [
        {"n": np.array(count), "go": np.array(True), "s": f32(1, 6), "most": np.array(6, np.float32), "w": w}
        for _ in range(4)
    ]
    model = same_runs(LOOP, *feeds, exactly=False)
    assert model.counters.compiled == 1
    assert 1 <= model.counters.units - 1 <= count


def body(lines: str, returns: str, carried: str = "%a, %b", sizes: str = "4") -> str:
    """A Loop that carries two arrays, and gives a row."""
    return f"""
graph(%n : Long(), %x : Float({sizes}), %y : Float({sizes}), %flag : Bool()):
  %none : NoneType = prim::Constant()
  %yes : Bool() = prim::Constant[value=splat(True)]()
  %p : Float({sizes}), %q : Float({sizes}), %r : Float(*, {sizes}) = onnx::Loop(%n, %none, %x, %y)
    block0(%i : Long(), %c : Bool(), %a : Float({sizes}), %b : Float({sizes})):
{lines}
      -> ({returns})
  return (%p, %q, %r)
"""


def test_rows_of_other_shapes_than_before_run_step_by_step() -> None:
    """The number of ones in the mask, not the inputs' shapes, decides how long rows are."""
    text = ir("""
        s: Float(3); x: Float(5, 3); m: Bool(4) -> t, y
        k: "Long(1, *)" = NonZero(m); f: "Float(1, *)" = Cast(k, to=1)
        t[Float(3)], y = Scan(s, x, num_scan_inputs=1, since_version=16)
        with block(c=Float(3), r=Float(3)):
            u: Float(1) = ReduceSum(r, [0], keepdims=1); e: "Float(1, *)" = Mul(f, u); d: Float(3) = Add(c, r)
            yield d, e
    """)
    masks = [np.arange(4) < ones for ones in (2, 2, 2, 3, 1, 0, 2)]
    model = same_runs(text, *[{"s": f32(3), "x": f32(5, 3), "m": mask} for mask in masks], exactly=False)
    assert model.counters.compiled == 1


LOOPING = """with prim::FusionGroup_NUMBER = graph looping(%h : Float(3)):
  %two : Long() = prim::Constant[value={2}]()
  %t : Bool() = prim::Constant[value={1}]()
  %k : Float(3) = onnx::Loop(%two, %t, %h)
    block0(%j : Long(), %c : Bool(), %m : Float(3)):
      %o : Float(3) = onnx::Abs(%m)
      -> (%t, %o)
  return (%k)
"""
HOLDING = """with prim::FusionGroup_0 = graph holding(%h : Float(3)):
  %k : Float(3) = prim::FusionGroup_1(%h)
  return (%k)
"""


@pytest.mark.parametrize(
    ("lines", "graphs"),
    [
        (
            "%two : int = prim::Constant[value=2]()\n    %no : bool = prim::Constant[value=0]()\n"
            "    prim::Loop(%two, %no)\n      block0(%j : int):\n        -> (%no)\n",
            "",
        ),
        ("%k : Float(3) = prim::If(%t)\n      block0():\n        -> (%h)\n      block1():\n        -> (%x)\n", ""),
        ("%k : Float(3) = prim::FusionGroup_0(%h)\n", LOOPING.replace("NUMBER", "0")),
        ("%k : Float(3) = prim::FusionGroup_0(%h)\n", HOLDING + LOOPING.replace("NUMBER", "1")),
    ],
)
def test_loops_with_blocks_inside_run_step_by_step(lines: str, graphs: str) -> None:
    """Also inside of groups, and of groups in these."""
    text = f"""
graph(%x : Float(3), %n : Long()):
  %t : Bool() = prim::Constant[value={{1}}]()
  %y : Float(3) = onnx::Loop(%n, %t, %x)
    block0(%i : Long(), %c : Bool(), %h : Float(3)):
    {lines}
      %g : Float(3) = onnx::Neg(%h)
      -> (%t, %g)
  return (%y)
{graphs}"""
    same_runs(text, *[{"x": f32(3), "n": np.array(3)}] * 4)


def test_arrays_that_lie_otherwise_and_other_iterations() -> None:
    model = irc.compile(parse_graph(SCAN.replace("OPTIONS", "")), passes="none")
    plain = irc.compile(parse_graph(SCAN.replace("OPTIONS", "")), passes="none", backend="numpy")
    for turn in range(6):
        feeds = scan_feeds()
        feeds["k"] = f32(14)[::2] if turn % 2 else feeds["k"]
        feeds["x"] = np.asfortranarray(feeds["x"])
        feeds["s"] = f32(7)[::-1]
        found, wanted = model.run(feeds), plain.run(feeds)
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5)
            assert not any(np.shares_memory(found[name], x) for x in feeds.values())


def test_threads_at_once() -> None:
    model = irc.compile(parse_graph(SCAN.replace("OPTIONS", "")), passes="none")
    feeds = [scan_feeds() for _ in range(8)]
    wanted: list[dict[str, Array]] = [CompiledModel(model.graph).run(fed) for fed in feeds]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            for found, each in zip(pool.map(model.run, feeds), wanted):
                assert all(found[name].tobytes() == value.tobytes() for name, value in each.items())


ENDLESS = ir("""
    n: Long(); x, y: Float(4) -> p
    none: NoneType = prim.Constant(); p: Float(4) = Loop(n, none, x)
    with block(i=Long(), c=Bool(), a=Float(4)): s: Float(4) = Add(a, y); t: Float(4) = Mul(s, y); yield c, t
""")


def endless() -> tuple[CompiledModel, dict[str, Any]]:
    feeds = {"n": np.array(3), "x": f32(4), "y": f32(4)}
    model = same_runs(ENDLESS, *[feeds] * 3)
    assert model.counters.compiled == 1
    return model, {**feeds, "n": np.array(1 << 60)}


def test_an_interrupt_ends_a_loop() -> None:
    model, feeds = endless()
    timer = threading.Timer(0.05, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.run(feeds)
    timer.join()
    assert model.run({**feeds, "n": np.array(2)})


TORCH = """
graph(%n : int, %x : Float(4, 6), %y : Float(4, 6), %w : Float(6, 6), %b : Float(6), %z : Float(*, *, *), %yes : bool):
  %true : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %half : float = prim::Constant[value=0.5]()
  %none : NoneType = prim::Constant()
  %p : Float(4, 6), %q : Float(4, 6) = prim::Loop(%n, %true, %x, %y)
    block0(%i : int, %a : Float(4, 6), %c : Float(4, 6)):
LINES
      -> (RETURNS)
  return (%p, %q)
"""


def torch_feeds(n: int = 5) -> dict[str, Any]:
    return {"n": n, "x": f32(4, 6), "y": f32(4, 6), "w": f32(6, 6), "b": f32(6), "z": f32(4, 6, 6), "yes": True}


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize(
    ("lines", "returns", "is_at_once"),
    [
        ("%m = aten::mul(%a, %b); %s = aten::add(%m, %y, %half); %r = aten::relu(%s)", "%true, %r, %s", True),
        ("%m = aten::matmul(%a, %w); %s = aten::add(%m, %b, %one); %r = aten::tanh(%s)", "%true, %r, %a", False),
        ("%m = aten::matmul(%a, %w); %s = aten::sub(%m, %c, %one); %r = aten::tanh(%s)", "%true, %r, %m", True),
        ("%m = aten::linear(%a, %w, %b); %r = aten::sigmoid(%m)", "%true, %r, %m", True),
        ("%m = aten::linear(%a, %w, %none); %r = aten::clamp(%m, %none, %half)", "%true, %r, %c", True),
        ("%m = aten::addmm(%b, %a, %w, %one, %one); %r = aten::tanh(%m)", "%true, %r, %c", True),
        ("%m = aten::addmm(%b, %a, %w, %half, %one); %r = aten::tanh(%m)", "%true, %r, %c", False),
        ("%m = aten::maximum(%a, %c); %r = aten::minimum(%m, %b)", "%true, %r, %c", True),
        ("%m = aten::mul(%a, %b); %s = aten::tanh_(%m)", "%true, %s, %c", False),
        ("%m = aten::add(%a, %c, %i)", "%true, %m, %c", False),
        ("%m = aten::add(%a, %c, %n)", "%true, %m, %c", False),
        ("%v = aten::select(%z, %one, %i); %m = aten::add(%a, %v, %half)", "%true, %m, %c", True),
        ("%v = aten::select(%z, %one, %i); %m = aten::neg(%v)", "%true, %m, %a", False),
        ("%v = aten::select(%z, %one, %i); %m = aten::neg(%v)", "%true, %m, %m", True),
        ("%v = aten::select(%z, %two, %i); %m = aten::add(%a, %v, %half)", "%true, %v, %m", False),
        ("%m = aten::neg(%a)", "%yes, %m, %c", False),
        ("%m = aten::neg(%a); %t = aten::t(%w); %s = aten::matmul(%m, %t)", "%true, %s, %c", False),
    ],
)
def test_loops_of_torchscript(passes: str, lines: str, returns: str, is_at_once: bool) -> None:
    text = "\n".join(f"      {each.replace(' =', ' : Float(*, 6) =')}" for each in lines.split("; "))
    graph = parse_graph(TORCH.replace("LINES", text).replace("RETURNS", returns))
    native, plain = (irc.compile(graph, passes=passes, backend=name) for name in ("native", "numpy"))
    for turn in range(7):
        feeds = torch_feeds(5 if turn < 6 else 0)
        if turn == 4:
            feeds["x"], feeds["z"] = map(np.asfortranarray, (feeds["x"], feeds["z"]))
        if turn == 5:
            feeds["z"] = np.asfortranarray(feeds["z"])
        found, wanted = native.run(feeds), plain.run(feeds)
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5)
            assert found[name].strides == value.strides
        if turn == 3:
            assert (native.counters.compiled == 1) == is_at_once
            assert native.counters.units == plain.counters.units


ROWS = typed_ir("""
    n: Long(); x: Float(6); z: Float(*, 6) -> p, q
    none: NoneType = prim.Constant(); p, q = Loop(n, none, x)
    with block(i=Long(), c=Bool(), a=Float(6)): v = Gather(z, i, axis=0); s = Add(a, v); yield c, s, v
""")


def test_rows_with_the_numbers_of_iterations() -> None:
    feeds = {"n": np.array(4), "x": f32(6), "z": f32(5, 6)}
    native, plain = models(ROWS)
    for n in (4, 4, 5, 0, 6, 4):
        if n > 5:
            for model in (native, plain):
                with pytest.raises(irc.Error, match=r"onnx::Gather '%v'"):
                    model.run({**feeds, "n": np.array(n)})
            continue
        found, wanted = (model.run({**feeds, "n": np.array(n)}) for model in (native, plain))
        for name, value in wanted.items():
            np.testing.assert_array_equal(found[name], value)
        assert native.counters.kernels == plain.counters.kernels == 2 * n
    assert native.counters.compiled == 1
    short = {**feeds, "z": f32(3, 6)}
    for _ in range(3):
        with pytest.raises(irc.Error, match=r"onnx::Gather '%v'"):
            native.run(short)


@pytest.mark.parametrize("rows", [1, 5])
def test_code_of_a_scan_touches_its_arrays_and_nothing_else(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequences, scan outputs, and what the body makes."""
    graph = parse_graph(SCAN.replace("OPTIONS", "").replace("Float(5, 7)", "Float(*, 7)"))
    buffers: list[Array] = []

    def buffer_for(stack: Any, count: int, dtype: Any, shape: tuple[int, ...]) -> Array:
        if stack._buffer is None:
            stack._buffer = fresh((count, *shape), dtype)
            buffers.append(stack._buffer)
        return stack._buffer

    check_memory(graph, scan_feeds(rows), monkeypatch, {(Stack, "buffer_for"): buffer_for})
    assert len(buffers) == 6


def test_code_of_a_loop_touches_its_arrays_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = """%v : Float(*, 6) = aten::select(%z, %one, %i)
      %m : Float(*, 6) = aten::addmm(%v, %a, %w, %one, %one)
      %s : Float(*, 6) = aten::tanh(%m)
      %t : Float(*, 6) = aten::sub(%s, %c, %half)"""
    graph = parse_graph(TORCH.replace("LINES", f"      {lines}").replace("RETURNS", "%true, %t, %s"))
    check_memory(graph, torch_feeds(), monkeypatch, {})


def check_memory(graph: Any, feeds: dict[str, Any], monkeypatch: pytest.MonkeyPatch, more: dict[Any, Any]) -> None:
    native, plain = (irc.compile(graph, passes="none", backend=name) for name in ("native", "numpy"))
    wanted = plain.run(feeds)
    given = {name: placed(x) if isinstance(x, np.ndarray) else x for name, x in feeds.items()}
    native.run(given)
    for (owner, name), function in {(iterations, "aligned_bytes"): lambda n: fresh((n,), np.uint8)[:], **more}.items():
        monkeypatch.setattr(owner, name, function)
    for _ in range(3):
        for name, value in native.run(given).items():
            np.testing.assert_allclose(value, wanted[name], rtol=1e-5, atol=1e-5)
    assert native.counters.compiled == 1
