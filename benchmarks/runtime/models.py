"""``python -m benchmarks.runtime models``: real models, operator by operator, beside ONNX Runtime.

YOLOv3-416 and the nine classifiers that the onnx package brings along, with
random weights. Both run the same model on the same input, in turns; one set of
runs for the time of the whole, and another, followed step by step, for where it
goes: irc by its profile, ONNX Runtime by its own. irc's operators are timed by
themselves (a fusion group without its members), on all threads together;
ONNX Runtime's fused ones count as what they begin with: ``FusedConv`` as Conv.

The table says where time goes. What is kept and compared is the time of whole runs.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import onnx

import irc
from benchmarks import peers, results
from benchmarks.race import IRC, race
from benchmarks.results import Row, Samples, against_peers
from benchmarks.yolov3 import build
from irc.demo import BUNDLED, bundled_model, randomize_weights, seeded_inputs
from irc.runtime.profile import Profile
from irc.tools.check.peers import onnxruntime_session

NAMES = ("yolov3", *BUNDLED)
PEER = "onnxruntime"
TURNS = 5
WARM_UP = 2
"""Runs before those that count: irc plans memory in the second."""

LEAST = 0.01
"""Operators with a smaller share of both runs are summed up."""

Times = dict[str, float]
"""Operator -> seconds in one run."""


class Comparison(NamedTuple):
    """One model: seconds of each whole run, by contender; then of its operators, irc's and ONNX Runtime's."""

    name: str
    whole: Samples
    own: Times
    peer: Times
    profile: Profile


def compare(name: str, turns: int = TURNS) -> Comparison:
    """Measure one model."""
    model = build() if name == "yolov3" else randomize_weights(bundled_model(name), seed=0)
    feeds = seeded_inputs(model, seed=1)
    compiled = irc.compile(model)
    contenders = {IRC: compiled.run}
    with tempfile.TemporaryDirectory() as folder:
        peer = PeerProfile(model, folder) if peers.is_installed(PEER) else None
        if peer is not None:
            contenders[PEER] = peer.plain
        for _ in range(WARM_UP):
            for run in contenders.values():
                run(feeds)
        whole, outputs = race(contenders, lambda _: feeds, turns, warm=True)
        if peer is not None:
            for mine, other in zip(outputs[IRC].values(), outputs[PEER], strict=True):
                np.testing.assert_allclose(mine, other, rtol=1e-2, atol=1e-3 * np.abs(other).max(), err_msg=name)
        profiles: list[Profile] = []
        for _ in range(turns):
            profiles.append(compiled.profile(feeds))
            if peer is not None:
                peer.followed(feeds)
        followed = peer.by_operator(turns) if peer is not None else []
    own = [{row.kind.removeprefix("onnx::"): row.own / 1e9 for row in p.by_operator()} for p in profiles]
    middle = sorted(profiles, key=lambda p: p.elapsed)[len(profiles) // 2]
    return Comparison(name, whole, _medians(own), _medians(followed), middle)


class PeerProfile:
    """A model in ONNX Runtime, once as it is and once followed by its own profiler.

    Args:
        model: the model.
        folder: where the profiler may write.
    """

    def __init__(self, model: onnx.ModelProto, folder: str) -> None:
        import onnxruntime

        self._plain = onnxruntime_session(model)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "profile")
        self._followed = onnxruntime.InferenceSession(model.SerializeToString(), options)

    def plain(self, feeds: Mapping[str, Any]) -> list[Any]:
        """A run that nobody follows."""
        return self._plain.run(None, dict(feeds))

    def followed(self, feeds: Mapping[str, Any]) -> list[Any]:
        """A run that is followed."""
        return self._followed.run(None, dict(feeds))

    def by_operator(self, runs: int) -> list[Times]:
        """Of the last ``runs`` followed runs, the operators of each. Ends following."""
        events = json.loads(Path(self._followed.end_profiling()).read_text())
        return operators_by_run(events)[-runs:]


def operators_by_run(events: Iterable[Mapping[str, Any]]) -> list[Times]:
    """What each run in a profile of ONNX Runtime spent on which operator."""
    ordered = sorted(events, key=lambda e: e.get("ts", 0))
    spans = [(e["ts"], e["ts"] + e["dur"]) for e in ordered if e.get("name") == "model_run"]
    found: list[Times] = [defaultdict(float) for _ in spans]
    for event in ordered:
        if event.get("cat") != "Node" or not event["name"].endswith("_kernel_time"):
            continue
        for (start, end), times in zip(spans, found):
            if start <= event["ts"] < end:
                times[event["args"]["op_name"].removeprefix("Fused")] += event["dur"] / 1e6
    return [dict(times) for times in found]


def rows(found: Comparison) -> list[Row]:
    """What of one model is compared with other days."""
    return [
        *against_peers(f"{found.name}/run", found.whole, "s"),
        Row(f"{found.name}/peak", found.profile.peak, "bytes"),
    ]


def show(found: Comparison) -> None:
    """Print a model's tables."""
    print()
    results.show(rows(found))
    print(f"{'operator':24}{'irc, ms':>10}{'share':>8}{'ORT, ms':>10}{'irc to it':>10}")
    all_own, all_peer = sum(found.own.values()), sum(found.peer.values())
    rest = 0.0
    for kind in sorted(found.own.keys() | found.peer.keys(), key=lambda k: -found.own.get(k, 0.0)):
        own, peer = found.own.get(kind), found.peer.get(kind)
        if (own or 0) < LEAST * all_own and (peer or 0) < LEAST * all_peer:
            rest += own or 0
            continue
        share = "" if own is None else f"{own / all_own:.1%}"
        ratio = f"{own / peer:.2f}" if own and peer else ""
        print(f"{kind:24}{_ms(own):>10}{share:>8}{_ms(peer):>10}{ratio:>10}")
    print(f"{'others':24}{_ms(rest):>10}{rest / all_own:8.1%}")
    profile = found.profile
    print(f"{'between operators':24}{_ms(profile.between / 1e9):>10}")
    counters = profile.counters
    print(
        f"{counters.units:,} units, {counters.kernels:,} kernels, {counters.in_place:,} in place;"
        f" {profile.peak:,} bytes at the peak"
    )


def _medians(runs: list[Times]) -> Times:
    kinds = dict.fromkeys(kind for run in runs for kind in run)
    return {kind: median(run.get(kind, 0.0) for run in runs) for kind in kinds}


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:,.2f}"


def measure(names: Iterable[str] = NAMES) -> list[Row]:
    """Measure models, print their tables, and return what is compared of them."""
    made: list[Row] = []
    for name in names:
        found = compare(name)
        show(found)
        made += rows(found)
    return made
