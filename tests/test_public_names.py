"""What the pages call by its full name is there after `import irc` alone."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import irc

ROOT = Path(__file__).parent.parent
NO_NAMES_OF_PYTHON = {
    "irc.backends",
    "irc.denotation",
    "irc.doc_string",
    "irc.operators",
    "irc.pipeline",
    "irc.py",
    "irc.source",
    "irc.version",
}
"""Groups of entry points, keys of metadata, and a file."""


def names() -> set[str]:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    found = {
        name for page in pages for name in re.findall(r"(?<![\w./-])irc(?:\.[a-zA-Z]\w*)+", page.read_text("utf-8"))
    }
    return found - NO_NAMES_OF_PYTHON


def test_names_in_pages() -> None:
    assert {"irc.compile", "irc.check.check_model", "irc.frontend.torchscript.import_torchscript"} <= names()
    script = f"""
import sys, irc
assert not {{"onnx", "irc.backend", "irc.check", "irc.demo", "irc.frontend"}} & sys.modules.keys()
for name in {sorted(names())}:
    found = irc
    for part in name.split(".")[1:]:
        found = getattr(found, part)
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


@pytest.mark.parametrize("module", [irc, irc.frontend, irc.demo])
def test_names_that_are_not_there(module: object) -> None:
    assert not hasattr(module, "nonsense")
    assert {"frontend", "check"} <= set(dir(irc)) and {"onnx", "torchscript"} <= set(dir(irc.frontend))
    assert set(irc.demo.__all__) <= set(dir(irc.demo))
