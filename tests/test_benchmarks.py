"""What benchmarks conclude must not depend on who runs first or on who fails."""

import json
import platform
import re
from pathlib import Path

import onnx
import pytest

from benchmarks import compare, facts, families, graphs, growth, peers, results
from benchmarks.race import race
from benchmarks.results import Row
from irc.demo import bundled_model, randomize_weights, seeded_inputs
from irc.ir import parse_graph
from tests.processes import python


def test_contenders_take_turns_each_with_an_argument_of_its_own() -> None:
    calls: list[tuple[str, tuple[str, int]]] = []
    arguments = iter(range(100))

    def contender(name: str):
        def run(argument: tuple[str, int]) -> str:
            calls.append((name, argument))
            return name.upper()

        return run

    best, results = race({name: contender(name) for name in ("a", "b")}, lambda name: (name, next(arguments)), turns=2)
    assert calls == [("a", ("a", 0)), ("b", ("b", 1)), ("a", ("a", 2)), ("b", ("b", 3))]
    assert results == {"a": "A", "b": "B"}
    assert best.keys() == {"a", "b"}


def test_a_peer_that_fails_is_named_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("out of order")

    best, results = race({"irc": lambda x: x, "peer": fail}, lambda _: 1, turns=3)
    assert best.keys() == results.keys() == {"irc"}
    assert capsys.readouterr().out == "peer fails: RuntimeError: out of order\n"
    with pytest.raises(RuntimeError):
        race({"irc": fail}, lambda _: 1, turns=1)


def test_what_cannot_be_imported_is_left_out_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert peers.installed({"onnx.reference": 1, "no_such_package.part": 2}) == {"onnx.reference": 1}
    monkeypatch.setattr(peers, "NAMES", ("onnx", "no_such_package"))
    assert peers.absent() == ["no_such_package is not installed: left out (pip install no_such_package)"]
    assert facts.title("onnx.reference") == f"onnx.reference {onnx.__version__}"
    assert facts.title("no_such_package") == "no_such_package"
    assert facts.title("onnx, but slower") == "onnx, but slower"


@pytest.mark.parametrize("name", peers.OPTIMIZERS)
def test_an_optimiser_keeps_what_a_model_computes(name: str) -> None:
    pytest.importorskip(name)  # the bench extra
    model = randomize_weights(bundled_model("shufflenet"), seed=0)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    feeds = seeded_inputs(model, seed=1)
    prepare = peers.RUNNERS["onnxruntime"]
    (expected,), (result,) = prepare(model)(feeds), prepare(peers.OPTIMIZERS[name](copy))(feeds)
    assert abs(result - expected).max() < 1e-3 * expected.max()


def test_constants_are_no_nodes_that_count() -> None:
    """Some tools leave Constant nodes where others make initializers."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) {
            c = Constant <value = float {2.0}> ()
            y = Mul (x, c)
        }"""
    )
    assert peers.computing_nodes(model) == 1
    assert peers.computing_nodes(peers.session_model(model)) == 1


# -- rows, and comparing them -------------------------------------------------------

HERE = {"processor": "a", "processors": 2, "system": "b", "python": "c", "load": 0.1}


def of(*rows: Row, **machine: object) -> dict[str, object]:
    return {"machine": {**HERE, **machine}, "rows": [row._asdict() for row in rows]}


def test_rows_of_peers_have_their_value_and_the_ratio_of_ours_to_it() -> None:
    rows = results.against_peers("yolo", {"irc": [1.0], "onnx": [4.0], "y": [0.0]}, "ms", scale=1e3)
    x = f"yolo/onnx {onnx.__version__}"
    assert rows == [Row("yolo/irc", 1e3, "ms"), Row(x, 4e3, "ms", 0.25), Row("yolo/y", 0.0, "ms", None)]


def test_a_row_is_the_median_and_how_far_apart_the_turns_lie() -> None:
    turns = {"irc": [1.0, 1.1, 9.0, 0.9, 1.0], "y": [2.0, 2.0, 2.0, 2.0, 2.0]}
    irc, y = results.against_peers("yolo", turns, "s")
    assert irc == Row("yolo/irc", 1.0, "s", noise=pytest.approx(0.05))
    assert y == Row("yolo/y", 2.0, "s", 0.5, noise=pytest.approx(0.05))
    assert results.spread([5.0]) == results.spread([0.0, 0.0]) == 0


def test_rows_are_shown_with_what_irc_takes_of_a_peers_value(capsys: pytest.CaptureFixture[str]) -> None:
    results.show([Row("a", 12345, "bytes"), Row("b", 0.0123456, "ms", 0.25)])
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["a", "12,345", "bytes"],
        ["b", "0.01235", "ms", "irc:", "0.25", "of", "it"],
    ]


@pytest.mark.parametrize(
    ("before", "after", "regression"),
    [
        (Row("r", 1.0, "s", 0.50), Row("r", 9.0, "s", 0.64), False),  # the peer got slower, not irc
        (Row("r", 1.0, "s", 0.50), Row("r", 1.0, "s", 0.66), True),
        (Row("r", 1.0, "s"), Row("r", 1.29, "s"), False),
        (Row("r", 1.0, "s"), Row("r", 1.31, "s"), True),
        (Row("r", 125, "nodes"), Row("r", 126, "nodes"), True),
        (Row("r", 125, "nodes"), Row("r", 100, "nodes"), False),
        (Row("r", 0.2, "exponent"), Row("r", 1.09, "exponent"), False),  # below 1 there is nothing to gain
        (Row("r", 1.0, "exponent"), Row("r", 1.11, "exponent"), True),
        (Row("r", 0, "nodes"), Row("r", 1, "nodes"), True),
        (Row("r", 0, "bytes/step"), Row("r", 1, "bytes/step"), True),
        (Row("r", 1.0, "ms", 0.50, 0.05), Row("r", 1.0, "ms", 0.69, 0.05), False),  # within the margin and the noise
        (Row("r", 1.0, "ms", 0.50, 0.05), Row("r", 1.0, "ms", 0.71, 0.05), True),
    ],
)
def test_a_regression_is_what_exceeds_the_tolerance(before: Row, after: Row, regression: bool) -> None:
    (change,) = results.changes(of(before), of(after, load=5.0))
    assert change.is_regression == regression


def test_a_row_exceeds_its_limit_unless_that_may_be_chance(capsys: pytest.CaptureFixture[str]) -> None:
    twice = results.limited("r/slow", [2.0, 2.1, 1.9, 2.0, 2.0], [1.0] * 5, limit=1.05)
    unsure = results.limited("r/unsure", [2.0, 0.5, 1.9, 0.6, 2.0], [1.0] * 5, limit=1.05)
    counted, fewer = Row("r/copies", 1, "copies", limit=0), Row("r/kernels", -1, "kernels", limit=0)
    assert (twice.value, unsure.value) == (2.0, 1.9)
    assert [row.exceeds for row in (twice, unsure, counted, fewer)] == [True, False, True, False]
    assert not Row("r", 9.0, "times").exceeds
    rows = of(twice, unsure, counted, fewer)
    assert compare.report({"runtime": rows}, {"runtime": rows}) == 2, "whatever the baseline says"
    said = capsys.readouterr().out
    assert "r/slow: 2   at most 1.05, surely 1.9: EXCEEDED" in said and "r/copies: 1   at most 0: EXCEEDED" in said


def test_the_interval_of_a_median_holds_it_and_shrinks_with_more_samples() -> None:
    few, many = ([1 + 0.1 * (i % 5) for i in range(n)] for n in (5, 500))
    for samples in (few, many):
        low, high = results.interval(samples)
        assert 1 <= low <= 1.2 <= high <= 1.4
    assert results.interval(many)[1] - results.interval(many)[0] < 0.11 < 0.3 < results.interval(few)[1] - 1


def test_times_are_compared_only_where_the_machines_agree() -> None:
    rows = Row("t/1", 1.0, "s"), Row("u/1", 1.0, "us/node"), Row("p/1", 1.0, "s", 0.5), Row("n", 1, "nodes")
    rows = (*rows, Row("e", 1.0, "exponent"), Row("m", 1.0, "bytes/node"))
    assert [c.name[0] for c in results.changes(of(*rows), of(*rows))] == ["t", "u", "p", "n", "e", "m"]
    assert [c.name[0] for c in results.changes(of(*rows), of(*rows, processor="z"))] == ["p", "n", "e", "m"]


def test_a_kernel_that_is_updated_makes_no_other_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    before = facts.system()
    assert platform.system() in before and platform.machine() in before
    for name in ("platform", "release", "version"):
        monkeypatch.setattr(platform, name, lambda *_: "Linux-9.9")
    assert facts.system() == before
    baseline = json.loads(results.BASELINE.read_text())
    assert all(re.fullmatch(r"\w+ \w+( \w+ [\d.]+)?", result["machine"]["system"]) for result in baseline.values())


def test_a_time_beside_which_a_peers_was_taken_is_compared_by_its_ratio_alone() -> None:
    before = of(Row("a/irc", 1.0, "s"), Row("a/x 1", 2.0, "s", 0.5))
    slower = Row("a/irc", 2.0, "s")
    assert [c.name for c in results.changes(before, of(slower, Row("a/x 1", 4.0, "s", 0.5)))] == ["a/x 1 (irc to it)"]
    assert [c.name for c in results.changes(before, of(slower, Row("a/x 2", 4.0, "s", 0.5)))] == ["a/irc"]


def test_rows_that_only_one_result_has_or_of_another_unit_or_to_be_read_are_not_compared() -> None:
    before = of(Row("a", 1.0, "s"), Row("b", 1.0, "s"), Row("c", 1.0, "s", 1.0), Row("e", 1, "blocks"))
    after = of(Row("a", 1.0, "nodes"), Row("c", 2.0, "s"), Row("d", 1.0, "s"), Row("e", 2, "blocks"))
    assert results.changes(before, after) == []


def test_results_survive_being_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.facts.OUT", tmp_path)
    rows = [Row("a", 1.5, "s"), Row("b", 3, "nodes", 0.5)]
    results.save("some", rows, families={"chain": []})
    (tmp_path / "older.json").write_text('{"machine": {}}')
    measured = results.load(tmp_path)
    assert measured.keys() == {"some"}
    assert [Row(**row) for row in measured["some"]["rows"]] == rows
    results.keep(measured, tmp_path / "baseline.json")
    assert json.loads((tmp_path / "baseline.json").read_text()) == measured


def test_comparing_fails_where_something_is_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline = tmp_path / "baseline.json"
    results.keep({"some": of(Row("a", 10, "nodes")), "gone": of()}, baseline)
    out = tmp_path / "out"
    out.mkdir()

    def status(nodes: int) -> int:
        (out / "some.json").write_text(json.dumps(of(Row("a", nodes, "nodes"), python="d")))
        (out / "new.json").write_text(json.dumps(of()))
        monkeypatch.setattr("sys.argv", ["compare", "--baseline", str(baseline), "--results", str(out)])
        with pytest.raises(SystemExit) as exit_:
            compare.main()
        return int(exit_.value.code or 0)

    assert status(10) == 0
    assert "some: 1 of 1 rows compared, 0 worse (times are not compared: another python)" in capsys.readouterr().out
    assert status(12) == 1
    printed = capsys.readouterr().out
    assert "  a: 10 -> 12 nodes (+20%, allowed +0%)\n" in printed
    assert "new: not in the baseline\n" in printed
    assert "gone: in the baseline, but not measured\n" in printed


def test_the_kept_baseline_can_be_compared_with() -> None:
    baseline = json.loads(results.BASELINE.read_text())
    assert {"models", "graphs", "growth"} <= baseline.keys()
    for result in baseline.values():
        compared = results.changes(result, result)
        assert len(compared) >= len(result["rows"]) / 2
        assert not any(change.is_regression for change in compared)


# -- growth -------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_the_slope_of_a_power_is_its_exponent(exponent: float) -> None:
    assert growth.slope([(n, 3e-6 * n**exponent) for n in (1_000, 4_000, 16_000)]) == pytest.approx(exponent)


def test_times_are_those_at_the_fastest_pace() -> None:
    """The second graph was measured while the processor ran at half its pace: its time says so of the bit, too."""
    runs = [
        {"nodes": 1_000, "bit": 0.001, "steps": {"parse": {"bits": 5.0, "bytes": 1}}},
        {"nodes": 2_000, "bit": 0.002, "steps": {"parse": {"bits": 10.0, "bytes": 1}}},
    ]
    assert [run["steps"]["parse"]["seconds"] for run in growth.in_seconds(runs)] == [0.005, 0.01]


def test_exponents_are_fitted_where_a_step_ran_and_rows_are_of_its_largest_size() -> None:
    def step(seconds: float) -> dict[str, float]:
        return {"seconds": seconds, "bytes": 1_000_000}

    runs = [
        {"nodes": 1_000, "steps": {"parse": step(0.001), "cse": step(0.01), "once": step(1)}},
        {"nodes": 10_000, "steps": {"parse": step(0.01), "cse": step(1.0)}},
        {"nodes": 100_000, "steps": {"parse": step(1.0)}},
    ]
    found = growth.exponents(runs)
    assert found["cse"]["fitted"] == pytest.approx(2.0)
    assert found["parse"]["fitted"] == pytest.approx(1.5)
    assert found["parse"]["last"] == pytest.approx(2.0)
    assert "once" not in found
    rows = {row.name: row for row in growth.rows_of("chain", runs, found)}
    assert rows["chain/parse/memory at 100000"].value == 10
    assert rows["chain/cse/memory at 10000"].value == 100
    assert rows["chain/cse/time at 10000"].value == pytest.approx(100)
    assert rows["chain/parse/exponent"].value == pytest.approx(1.5)


@pytest.mark.parametrize("family", families.FAMILIES)
def test_families_are_of_the_size_asked_for(family: str) -> None:
    sizes = [sum(1 for _ in parse_graph(families.text(family, n, families.TYPED)).walk()) for n in (400, 1_000)]
    assert sizes[0] == pytest.approx(400, rel=0.15)
    assert sizes[1] == pytest.approx(1_000, rel=0.15)


def test_scripted_yolov3_is_text_without_classes_and_calls() -> None:
    kinds = {node.kind for node in parse_graph(graphs.scripted()).walk()}
    assert kinds.isdisjoint({"prim::GetAttr", "prim::CallFunction", "prim::CallMethod"})
    assert {"aten::conv2d", "aten::leaky_relu_", "aten::copy_"} <= kinds


@pytest.mark.parametrize(("arguments", "message"), [(["lenet"], "lenet"), (["--turns", "0"], "--turns")])
def test_wrong_usage_is_refused(arguments: list[str], message: str) -> None:
    done = python(Path(__file__).parent.parent, "-m", "benchmarks", *arguments)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[-1]
