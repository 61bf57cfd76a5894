"""irc's analysis against PyTorch's, on what PyTorch makes of modules: see ``report.py``, which tells the counts."""

from pathlib import Path

import pytest

from tests.differential import report as reports
from tests.differential.answers import Answers
from tests.differential.conftest import Report
from tests.differential.dumps import DUMPS
from tests.differential.refusals import CLASS

pytestmark = pytest.mark.filterwarnings("ignore")  # TorchScript is deprecated


@pytest.mark.parametrize("name", DUMPS)
def test_irc_is_more_cautious_only_where_pytorch_is_wrong(name: str, report: Report) -> None:
    found = reports.compare(name)
    for known, answers in found.items():
        report(*answers.report(f"{name}, {known}"))
        assert answers.theirs("sharing") or name in ("numbers", "texts"), "nothing was compared"
    assert not found["owned"].reasons["sharing", CLASS], "all objects are known"
    denied = {known: answers.denied("sharing") for known, answers in found.items()}
    assert denied["owned"] >= denied["alone"], "to know more tells more apart"


def test_one_that_is_more_cautious_for_no_reason_is_noticed() -> None:
    dump = DUMPS["views"]
    both = dump.alone()
    both.they_contain = lambda a, b: False  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match="more cautious than PyTorch's, and nothing tells why"):
        reports.analyses(both, Answers())


def test_the_command_prints_a_table_and_writes_all_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reports.main(["views", "cache", "--json", str(tmp_path / "found.json")]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert "denied" in header
    assert [line.split()[0] for line in lines] == ["views", "cache"]
    written = (tmp_path / "found.json").read_text()
    assert '"PyTorch alone"' in written and '"alone"' in written
