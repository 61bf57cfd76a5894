"""Real models end to end: compiled, verified after every pass, run, and compared with ONNX Runtime."""

from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest

import irc
from benchmarks.yolov3 import build
from irc.demo import BUNDLED, bundled_model, randomize_weights, seeded_inputs
from irc.fuser.policy import is_anchor, operators
from irc.fuser.subgraph import is_group
from irc.passes import create_instruments
from irc.tools.check import Tolerance, difference
from irc.tools.check.models import comparable
from irc.tools.check.oracles import values_of
from irc.tools.check.peers import onnxruntime_session
from tests.counting import analyses
from tests.effort import slow_if
from tests.elsewhere import run_onnxruntime

SEEDS = (1, 2)
RTOL, ATOL = 1e-3, 1e-5  # the second relative to the largest element

MODELS = {name: (lambda name=name: randomize_weights(bundled_model(name), seed=0)) for name in BUNDLED}
MODELS["yolov3"] = build
LARGE = ("bvlc_alexnet", "densenet121", "inception_v2", "resnet50", "vgg19", "yolov3", "zfnet512")
"""Models that take long, each of the kind of one that does not."""

MODELS["yolov3 with batch normalisation"] = lambda: build(image_size=96, width_divisor=4, batch_norm=True)


@cache
def session(name: str) -> tuple[onnx.ModelProto, Any]:
    session.cache_clear()  # one model at a time: some take half a gigabyte
    model = MODELS[name]()
    return model, onnxruntime_session(model, threads=1)


def assert_same(found: Any, expected: Any) -> None:
    error, right = difference(found, expected, Tolerance(RTOL, ATOL))
    assert right, f"off by {error:.1e} of the scale"


@pytest.mark.parametrize("name", slow_if(MODELS, LARGE))
def test_same_as_onnx_runtime(name, tmp_path):
    model, oracle = session(name)
    verify = create_instruments(["verify-each"])
    variants = {
        "default": irc.compile(model, instruments=verify),
        "no passes": irc.compile(model, passes="none", instruments=verify),
        "on NumPy": irc.compile(model, backend="numpy"),
    }
    variants["default"].save(tmp_path / "m.irc")
    variants["loaded"] = irc.load(tmp_path / "m.irc")
    names = [output.name for output in oracle.get_outputs()]
    outputs = []
    for seed in SEEDS:
        feeds = seeded_inputs(model, seed)
        expected = dict(zip(names, oracle.run(names, feeds)))
        outputs.append(expected)
        for compiled in variants.values():
            found = compiled.run(feeds)
            assert list(found) == names
            for output in names:
                assert_same(found[output], expected[output])
    for output in names:
        first, second = (run[output] for run in outputs)
        assert np.abs(first - second).max() > 1e-3 * np.abs(first).max(), "the outputs should depend on the inputs"
    counters = variants["on NumPy"].counters  # of a second run, in planned memory
    assert counters.planned > 0 and counters.arena_bytes == counters.arena_bound, counters
    counters = variants["default"].counters
    assert counters.planned > 0 and counters.arena_bytes <= 1.06 * counters.arena_bound, counters


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet", "inception_v1"])
@pytest.mark.parametrize("passes", ["none", "default"])
def test_every_intermediate_value(name, passes):
    model, _ = session(name)
    compiled = irc.compile(model, passes=passes)
    names = [value.name for value in comparable(compiled.graph)]
    extended = onnx.ModelProto()
    extended.CopyFrom(model)
    outputs = {o.name for o in model.graph.output}
    computed = {o for node in model.graph.node for o in node.output}
    shared = [n for n in names if n in computed]
    assert len(shared) > 0.9 * len(names), "values keep their names"
    extended.graph.output.extend(onnx.ValueInfoProto(name=n) for n in shared if n not in outputs)
    feeds = seeded_inputs(model, 3)
    expected = dict(zip(shared, run_onnxruntime(extended, feeds, shared)))
    found = values_of(compiled.graph, feeds, shared)
    for value in shared:
        assert_same(found[value], expected[value])


@pytest.mark.parametrize("batch_norm", [False, True])
def test_yolov3_becomes_small(batch_norm):
    compiled = irc.compile(build(image_size=64, width_divisor=16, batch_norm=batch_norm))
    graph, report = compiled.graph, compiled.report
    groups = [node for node in graph.nodes if is_group(node)]
    # onnxslim 0.1.98 leaves 229 operators of this model, all at the top level
    assert report.nodes_after <= 148
    assert len(graph.nodes) <= 150  # constants included
    assert sum(report.operators_after.values()) <= 229
    assert report.operators_after["onnx::Conv"] == 75
    assert report.operators_after["onnx::LeakyRelu"] == 72
    assert "onnx::BatchNormalization" not in report.operators_after
    alone = {node.kind for node in graph.nodes} - {"prim::FusionGroup"}
    assert "onnx::LeakyRelu" not in alone
    assert "onnx::Add" not in alone
    assert all(sum(is_anchor(op) for op in operators(group)) <= 1 for group in groups)


def test_the_fuser_builds_no_second_alias_analysis():
    module = irc.compile(build(image_size=64, width_divisor=16), passes="inline,canonicalize,constant-fold").module
    with analyses() as built:
        irc.passes.PassManager("fuse").run(module)
    assert built.call_count == 1
