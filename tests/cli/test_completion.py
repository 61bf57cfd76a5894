"""``irc completion``: what shells complete with the scripts."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.helpers import Command

BASH = """
source irc.bash
for line in "irc ext" "irc batch " "irc bench --against " "irc compile --verify" "irc inspect mod" "irc run m -o mod"
do
    read -ra COMP_WORDS <<< "$line"
    [[ $line == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )) COMPREPLY=()
    _shtab_irc
    echo "${COMPREPLY[*]}"
done
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_well_formed(shell: str, irc: Command) -> None:
    result = irc("completion", shell)
    assert (result.status, result.err) == (0, "") and "--external-data" in result.out
    Path("script").write_text(result.out, "utf-8")
    if shutil.which(shell):
        subprocess.run([shell, "-n", "script"], check=True)


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash(irc: Command) -> None:
    Path("irc.bash").write_text(irc("completion", "bash").out, "utf-8")
    Path("model.onnx").touch()
    done = subprocess.run(["bash", "-c", BASH], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "extract",
        "compile check inspect bench",
        "onnxruntime onnx.reference none",
        "--verify-each --verify-alias",
        "model.onnx",
        "model.onnx",
    ]


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish(irc: Command) -> None:
    Path("irc.fish").write_text(irc("completion", "fish").out, "utf-8")
    done = subprocess.run(
        ["fish", "-c", "source irc.fish; complete -C 'irc ext'"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("extract\t")


def test_other_commands_do_not_import_the_library() -> None:
    script = "import sys; from irc.cli.commands import whole_parser; whole_parser(); assert 'shtab' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parent.parent.parent)


@pytest.mark.parametrize("argv", [["completion"], ["completion", "powershell"]])
def test_wrong_usage(argv: list[str], irc: Command) -> None:
    assert irc(*argv).status == 2
