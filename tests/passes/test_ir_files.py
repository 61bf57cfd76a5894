"""The ``.ir`` files beside this test: graphs, the pipeline to run, and what must come out.

A file holds sections that ``# -----`` lines part. Each begins with
``# RUN: pipeline``; its ``# CHECK`` lines are checked by the filecheck package
against the text of the transformed graph (or module, if there are functions).
"""

from pathlib import Path

import pytest
from filecheck.matcher import Matcher
from filecheck.options import Options

from irc.ir import parse_module
from tests.passes.helpers import run_passes

FOLDER = Path(__file__).parent / "ir"


def sections() -> list[tuple[str, str, str]]:
    found = []
    for path in sorted(FOLDER.glob("*.ir")):
        line = 1
        for text in path.read_text().split("# -----\n"):
            comments = [row.removeprefix("# RUN: ") for row in text.splitlines() if row.startswith("# RUN: ")]
            assert len(comments) == 1, f"{path}:{line}: a section needs one RUN line"
            found.append((f"{path.name}:{line}", comments[0], text))
            line += text.count("\n") + 1
    return found


@pytest.mark.parametrize(("place", "pipeline", "text"), sections(), ids=lambda x: x if len(x) < 40 else "")
def test_file(place, pipeline, text, tmp_path, capsys):
    module = parse_module(text, filename=place)
    run_passes(module, pipeline)
    (tmp_path / "checks").write_text(text)
    (tmp_path / "output").write_text(str(module))
    matcher = Matcher.from_opts(Options(str(tmp_path / "checks"), str(tmp_path / "output")))
    failed = matcher.run()
    assert not failed, f"{place} does not match\n{module}\n{capsys.readouterr().err}"
