"""Programs that some pass once gave other results: what each computes with no pass, and with those and all others."""

from typing import Any

import numpy as np
import pytest

import irc
from irc.ir import parse_graph
from tests.graphs import ir, typed_ir

ONES = np.ones((1, 2), np.float32)

# Name -> the graph, its inputs.
PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "Scan of version 8 writes into its state": (
        ir("""
            x: Float(1, 2); xs: Float(1, 3, 2) -> k0, k
            st: Float(1, 2) = Neg(x, since_version=13); xt: Float(1, 3, 2) = Neg(xs, since_version=13)
            k0: Float(1, 2) = Abs(st, since_version=13)
            r[Float(1, 2)], o[Float(1, 3, 2)] = Scan(None, st, xt, num_scan_inputs=1, since_version=8)
            with block(s=Float(2), u=Float(2)):
                w: Float(2) = Add_(s, u, since_version=14); v: Float(2) = Add(w, u, since_version=7); yield v, v
            k: Float(1, 2) = Abs(st, since_version=13)
        """),
        {"x": ONES, "xs": np.ones((1, 3, 2), np.float32)},
    ),
    "a slice of a tuple from its end": (
        ir("""
            x: Float(1, 2) -> k0, k
            a = neg(x); c = neg(neg(x)); t: "(Tensor, Tensor)" = prim.TupleConstruct(a, c)
            s: "(Tensor)" = prim.TupleSlice(t, beg=-1, end=2); q = prim.TupleUnpack(s); k0 = abs(c)
            w = add_(q, 5.0, 1); k = abs(c)
        """),
        {"x": ONES},
    ),
    "a normalisation in a loop, written to": (
        typed_ir("""
            x: Float(1, 1, 2, 2); n: int -> r
            w: Float(1, 1, 1, 1) = prim.Constant(value=splat(1.)); s: Float(1) = prim.Constant(value=splat(1.))
            z: Float(1) = prim.Constant(value=splat(0.)); c = Conv(x, w, since_version=11); r = prim.Loop(n, True, x)
            with block(i=int, u=Float(1, 1, 2, 2)):
                b = BatchNormalization(c, s, z, z, s, epsilon=0., since_version=15); e = Add_(b, s, since_version=14)
                yield True, e
        """),
        {"x": np.ones((1, 1, 2, 2), np.float32), "n": 3},
    ),
}


@pytest.mark.parametrize("passes", ["cse", "conv-bn-fold", "default", "default,remove-mutation,cse,in-place"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_stay(name: str, passes: str) -> None:
    text, feeds = PROGRAMS[name]
    expected = irc.compile(parse_graph(text), "none").run(feeds)
    found = irc.compile(parse_graph(text), passes, instruments=["verify-alias"]).run(feeds)
    for output, value in expected.items():
        np.testing.assert_array_equal(found[output], value)
