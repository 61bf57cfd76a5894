"""The table of modules in ``docs/explanation/runtime.md`` is complete, and in the order of their imports."""

import re
from pathlib import Path

from tests.test_architecture import RUNTIME as ORDER

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "irc" / "runtime"


def modules(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith("__")}


def test_the_table_names_each_module_in_order_and_no_other() -> None:
    page = (ROOT / "docs" / "explanation" / "runtime.md").read_text(encoding="utf-8")
    table = page.partition("| module | what it does |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", table, re.MULTILINE)
    named = [name for cell, _ in rows for name in re.findall(r"`([\w./]+)`", cell)]
    assert sorted(name.rstrip("/") for name in named) == sorted(modules(RUNTIME))
    assert tuple(name.removesuffix("/").removesuffix(".py") for name in named) == ORDER
    inside = {cell.strip("`/"): set(re.findall(r"`(\w+\.py)`", what)) for cell, what in rows if cell.endswith("/`")}
    assert {folder: modules(RUNTIME / folder) for folder, files in inside.items() if files} == {
        folder: files for folder, files in inside.items() if files
    }
