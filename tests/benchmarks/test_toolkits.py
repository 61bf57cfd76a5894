"""The table in the README of what tools do with wrong models: as kept, and repeated for what the tests can run."""

import json

import pytest

from benchmarks.toolkits import CASES, RESULTS, outcome, shown, table, versions

KEPT = json.loads(RESULTS.read_text("utf-8"))


def test_the_readme_shows_what_is_kept() -> None:
    assert shown() == table(KEPT["results"], KEPT["versions"])


@pytest.mark.parametrize("case", CASES)
def test_irc_names_what_is_wrong(case: str) -> None:
    found = outcome("irc", case)
    assert str(found) == KEPT["results"][case]["irc"]
    assert found.named and not found.traceback and found.wrote == (found.status == 0)


@pytest.mark.parametrize("case", [case for case in CASES if "more than" not in KEPT["results"][case]["ONNX Runtime"]])
def test_onnxruntime_does_as_kept(case: str) -> None:
    if versions().get("ONNX Runtime") != KEPT["versions"]["ONNX Runtime"]:
        pytest.skip("another version of ONNX Runtime is installed")
    assert str(outcome("ONNX Runtime", case)) == KEPT["results"][case]["ONNX Runtime"]
