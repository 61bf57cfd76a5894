"""Run the code blocks of a page, from top to bottom, in an empty folder: ``python -m tests.doc_blocks PAGE``.

A block's language says what running it means:

- ``python``: executed, in one name space for the page. What a top-level ``print(...)  # text`` prints is compared with
  the text; an ``output`` block after it is compared with all that the block prints. With a title (``python
  title="square.py"``), the block is a file of that name, which is imported once.
- ``console``: each line after ``$`` is a command of bash, in which ``irc`` and ``python`` are those of this process.
  The lines below a command, if there are any, are compared with all that it writes. Its exit status is 0, or 1 where
  the text shown has an error of irc's.
- ``ir``: parsed, verified, printed and parsed again. With a title, the block is a file.
- ``toml``, ``json``: parsed.
- ``sh``: what a test cannot run. Targets of make and modules of ``python -m`` exist.
- ``text``, ``output``: not run.

``...`` in a text to compare stands for anything within a line, alone on a line for any lines. Where the page has
``<!-- each block alone -->``, each block has a folder and a name space of its own. The code cells of a notebook are
``python`` blocks, and what is stored as their output is compared.
"""

import ast
import contextlib
import importlib
import importlib.util
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.processes import python

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^( *)```(\w*)([^\n`]*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
TITLE = re.compile(r'title="([\w./-]+)"')
RUN = ("python", "console", "ir", "toml", "json", "sh")
SHOWN = ("text", "output")
ALONE = "<!-- each block alone -->"
SHELL = 'irc() { "$PYTHON" -m irc "$@"; }; python() { "$PYTHON" "$@"; }; set -o pipefail\n'


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        language: the first word after the fence.
        title: the name of the file that it is, or "".
        text: what it holds.
        line: the number of the fence's line in the page.
        output: the ``output`` block after it, if there is one.
    """

    language: str
    title: str
    text: str
    line: int
    output: str | None = None


class Wrong(Exception):
    """A block does not do what the page says."""


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, or the cells of a notebook."""
    text = page.read_text("utf-8")
    if page.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        return [
            Block("python", "", "".join(cell["source"]), number, _stored(cell)) for number, cell in enumerate(cells, 1)
        ]
    found: list[Block] = []
    end = 0
    for match in FENCE.finditer(text):
        indent, language, info, body = match.groups()
        body = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
        if language == "output":
            if not found or text[end : match.start()].strip():
                raise Wrong(f"{page.name}: an output block follows no block")
            found[-1] = Block(*(getattr(found[-1], name) for name in ("language", "title", "text", "line")), body)
        else:
            title = TITLE.search(info)
            found.append(Block(language, title[1] if title else "", body, text.count("\n", 0, match.start()) + 1))
        end = match.end()
    return found


def file_of(page: Path, title: str) -> str:
    """The text of the block of this title."""
    (found,) = [block.text for block in blocks(page) if block.title == title]
    return found


def _stored(cell: dict[str, Any]) -> str:
    """What a notebook says that a cell printed."""
    return "".join("".join(output["text"]) for output in cell["outputs"])


def is_as_shown(shown: str, found: str) -> bool:
    """Whether ``found`` is the text shown: ``...`` alone on a line stands for any lines, else for part of a line."""
    pattern = ""
    for line in shown.strip("\n").splitlines():
        parts = map(re.escape, line.rstrip().split("..."))
        pattern += r"(?:[^\n]*\n)*?" if line.strip() == "..." else r"[^\n]*?".join(parts) + r"[ \t]*\n"
    return re.fullmatch(pattern, found.strip("\n") + "\n") is not None


class Runner:
    """Runs blocks one after the other in the current folder."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def run(self, block: Block) -> None:
        """Run a block, or raise `Wrong`, or what its code raises."""
        if block.title:
            path = Path(block.title)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, "utf-8")
            if block.language == "python":
                importlib.invalidate_caches()
                importlib.import_module(path.stem)
                return
        getattr(self, block.language)(block)

    def python(self, block: Block) -> None:
        """Execute one statement after the other, so that each may say in a comment what it prints."""
        source = block.text
        lines = source.splitlines()
        printed = ""
        for statement in ast.parse(source).body:
            out = io.StringIO()
            code = compile(ast.Module([statement], []), f"line {statement.lineno} of the block", "exec")
            with contextlib.redirect_stdout(out):
                exec(code, self.names)
            printed += out.getvalue()
            last = lines[(statement.end_lineno or 1) - 1].encode()
            said = re.match(r"\s*# (.*)$", last[statement.end_col_offset or 0 :].decode())
            if said and lines[statement.lineno - 1].startswith("print(") and not is_as_shown(said[1], out.getvalue()):
                raise Wrong(f"line {statement.lineno} prints\n{out.getvalue()}instead of\n{said[1]}")
        if block.output is not None and not is_as_shown(block.output, printed):
            raise Wrong(f"it prints\n{printed}instead of\n{block.output}")

    def console(self, block: Block) -> None:
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, shown = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
            settings = {"PYTHON": sys.executable, "COLUMNS": "100", "NO_COLOR": "1"}
            plain = re.sub(r"\s# .*", "", command)
            if plain.startswith("irc ") and not re.search(r"[|&;<>$`]", plain):
                words = shlex.split(plain)[1:]
                done = python(os.getcwd(), "-m", "irc", *words, is_merged=True, **settings)
            else:
                done = subprocess.run(
                    ["bash", "-c", SHELL + command],
                    env={**os.environ, **settings},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                )
            if done.returncode not in ((1,) if "irc: IRC" in shown else (0,)):
                raise Wrong(f"{command}ends with status {done.returncode}:\n{done.stdout}")
            if shown.strip() and not is_as_shown(shown, done.stdout):
                raise Wrong(f"{command}writes\n{done.stdout}instead of\n{shown}")

    def ir(self, block: Block) -> None:
        from irc.ir import parse_module

        module = parse_module(block.text)
        module.verify()
        parse_module(str(module))

    def toml(self, block: Block) -> None:
        tomllib.loads(block.text)

    def json(self, block: Block) -> None:
        json.loads(block.text)

    def sh(self, block: Block) -> None:
        makefile = (ROOT / "Makefile").read_text("utf-8")
        for line in block.text.splitlines():
            command = line.partition("#")[0].split()
            missing = [word for word in command if word.startswith("tests/") and not (ROOT / word).exists()]
            if missing:
                raise Wrong(f"there is no {missing[0]}")
            if command[:1] == ["make"]:
                targets = [word for word in command[1:] if "=" not in word]
                missing = [each for each in targets if not re.search(rf"^{each}:", makefile, re.MULTILINE)]
                if missing:
                    raise Wrong(f"there is no target {missing[0]}")
            elif "-m" in command:
                module = command[command.index("-m") + 1]
                if module not in ("pip", "venv") and importlib.util.find_spec(module) is None:
                    raise Wrong(f"there is no module {module}")
            elif command and command[0] not in ("pip", "git", "cd", "pre-commit", ".", "irc"):
                raise Wrong(f"nobody can tell whether this works: {line}")


def run_page(page: Path) -> None:
    """Run all blocks of a page, each in the folder and with the names that those before it have left."""
    is_alone = ALONE in page.read_text("utf-8")
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as top:
        sys.path.insert(0, top)
        try:
            runner = _at(Path(top))
            for number, block in enumerate(blocks(page)):
                if is_alone:
                    runner = _at(Path(top) / str(number))
                if block.language in RUN:
                    try:
                        runner.run(block)
                    except Exception as error:
                        raise Wrong(f"{page.name}, the block at line {block.line}: {error}") from error
        finally:
            os.chdir(before)
            del sys.path[0]


def _at(folder: Path) -> Runner:
    """A runner in a folder of its own."""
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    sys.path[0] = str(folder)
    return Runner()


if __name__ == "__main__":
    try:
        run_page(Path(sys.argv[1]).resolve())
    except Wrong as wrong:
        sys.exit(str(wrong))
