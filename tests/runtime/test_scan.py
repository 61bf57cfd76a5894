"""Scan of versions 8, 9 and 11 against the specification."""

import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.ir import parse_graph
from tests.graphs import ir, typed_ir
from tests.runtime.helpers import f32, i64, run

RNG = np.random.default_rng(0)


def scan(attributes: str, version: int, body_types: tuple[str, str, str] = ("Float(2)", "Float(2)", "Float(2)")) -> str:
    state, row, out = body_types
    return f"""
    graph(%s : Tensor, %x : Tensor, %k : Tensor):
      %last : Tensor, %sums : Tensor, %products : Tensor = onnx::Scan[{attributes}, since_version={version}](%s, %x, %k)
        block0(%a : {state}, %r : {row}, %f : {row}):
          %b : {out} = onnx::Add(%a, %r)
          %p : {out} = onnx::Mul(%r, %f)
          -> (%b, %b, %p)
      return (%last, %sums, %products)
    """


def expected(s, x, k, axes=(0, 0), backwards=(0, 0), out_axes=(0, 0), out_backwards=(0, 0)):
    x, k = (np.moveaxis(v, a, 0)[:: -1 if d else 1] for v, a, d in zip((x, k), axes, backwards))
    sums, products = [], []
    for r, f in zip(x, k):
        s = s + r
        sums.append(s)
        products.append(r * f)
    outs = [np.stack(v[:: -1 if d else 1], a) for v, a, d in zip((sums, products), out_axes, out_backwards)]
    return [s, *outs]


def assert_all_close(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_lengths_must_agree():
    with pytest.raises(Error, match=r"different lengths \[3, 2\]"):
        run(scan("num_scan_inputs=2", 11), f32(0, 0), np.ones((3, 2), np.float32), np.ones((2, 2), np.float32))


def test_an_axis_out_of_range_is_refused():
    x = np.ones((3, 2), np.float32)
    with pytest.raises(Error, match="axis 2 is out of range"):
        run(scan("num_scan_inputs=2, scan_input_axes=[2, 0]", 11), f32(0, 0), x, x)


@pytest.mark.parametrize("attributes", ["num_scan_inputs=0", "num_scan_inputs=4"])
def test_num_scan_inputs_out_of_range_is_refused(attributes):
    with pytest.raises(Error, match="num_scan_inputs"):
        run(scan(attributes, 11), f32(0, 0), f32(0, 0), f32(0, 0))


SCAN_8 = ir("""
    lens: Long?; s, x: Tensor -> last, sums
    last, sums = Scan(lens, s, x, num_scan_inputs=1, directions=[DIRECTION], since_version=8)
    with block(a=Float(2), r=Float(2)): b: Float(2) = Add(a, r); yield b, b
""")


@pytest.mark.parametrize("lengths", [[3], [3, 4], [-1, 2], 3, [[3, 3]]])
def test_version_8_checks_lengths(lengths):
    with pytest.raises(Error, match="sequence_lens"):
        run(SCAN_8.replace("DIRECTION", "0"), i64(lengths), np.ones((2, 2)), np.ones((2, 3, 2)))


@pytest.mark.parametrize(("states", "sequences"), [((2, 2), (2,)), ((), (2, 3, 2)), ((2, 2), ())])
def test_version_8_checks_ranks(states, sequences):
    with pytest.raises(Error, match="the inputs of Scan, without lengths, are of ranks"):
        run(SCAN_8.replace("DIRECTION", "0"), None, np.ones(states, np.float32), np.ones(sequences, np.float32))


def test_nested_scans_capture():
    text = typed_ir("""
        s: Float(); x: Float(*, *) -> last, rows
        last, rows = Scan(s, x, num_scan_inputs=1, since_version=11)
        with block(a=Float(), row="Float(*)"):
            t = Neg(a); b, out = Scan(a, row, num_scan_inputs=1, since_version=11)
            with block(c=Float(), e=Float()): d = Add(c, e); g = Add(Mul(d, t), s); yield d, g
            yield b, out
    """)
    s, x = np.array(2, np.float32), RNG.random((3, 4), np.float32)
    total, rows = s, []
    for row in x:
        t, out = -total, []
        for e in row:
            total = total + e
            out.append(total * t + s)
        rows.append(out)
    assert_all_close(run(text, s, x), [np.asarray(total), np.array(rows, np.float32)])


@pytest.mark.parametrize("name", ["scan_input_directions", "scan_output_directions"])
@pytest.mark.parametrize("direction", [-1, 2, -(2**63)])
def test_a_direction_is_forward_or_backward(name, direction):
    graph = parse_graph(f"""
    graph(%s : Float(), %x : Float(3)):
      %last : Float(), %rows : Float(*) = onnx::Scan[num_scan_inputs=1, {name}=[{direction}], since_version=11](%s, %x)
        block0(%state : Float(), %item : Float()):
          %sum : Float() = onnx::Add(%state, %item)
          -> (%sum, %sum)
      return (%last, %rows)
    """)
    with pytest.raises(Error, match="0 is forward, 1 is backward"):
        irc.compile(graph)
