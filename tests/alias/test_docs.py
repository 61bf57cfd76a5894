"""The worked example of ``docs/explanation/alias-analysis.md`` is what really comes out."""

import re
from pathlib import Path

from irc.alias.incremental import IncrementalSolution

DOCS = Path(__file__).parents[2] / "docs" / "explanation" / "alias-analysis.md"


def test_the_files_it_names_exist() -> None:
    table = DOCS.read_text().partition("| file in `irc/alias/`")[2].partition("## The model")[0]
    named = re.findall(r"`([a-z_]+\.py|[a-z_]+/)`", table)
    folder = DOCS.parents[2] / "irc" / "alias"
    assert named
    assert all((folder / name).exists() for name in named)
    described = {name.rstrip("/") for name in named} | {"__init__.py", "db.py"}
    assert {p.name for p in folder.iterdir() if p.name != "__pycache__"} <= described


def test_the_table_of_updates_is_complete() -> None:
    table = (
        (DOCS.parent / "alias-updates.md").read_text().partition("## Updates")[2].partition("Each value's element")[0]
    )
    told = [
        name
        for name in vars(IncrementalSolution)
        if name.endswith(("_value", "_node", "_nodes", "_inputs", "_wildcard"))
    ]
    assert {"rehome_value", "unnest_nodes", "add_node"} <= set(told)
    assert [name for name in told if not name.startswith("_") and f"`{name}" not in table] == []
