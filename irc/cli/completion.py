"""``irc completion``: scripts that let shells complete commands, options and files."""

from __future__ import annotations

import argparse
from typing import Any, cast

from irc.cli import options
from irc.cli.output import emit

SHELLS = ("bash", "zsh", "fish")

EXAMPLES = """\
  source <(irc completion bash)                  for this shell; in ~/.bashrc, for all
  irc completion zsh > ~/.zfunc/_irc             a folder of fpath
  irc completion fish > ~/.config/fish/completions/irc.fish"""

_FILES = ("MODEL", "A", "B", "PATH", "FILE", "OUT", "FOLDER", "DIR")
"""How metavars of options and arguments that are files begin."""


def add_completion(commands: options.Commands) -> None:
    """Add ``completion``."""
    purpose = "print a script that lets a shell complete commands, options and files"
    parser = options.add_command(commands, "completion", purpose, EXAMPLES, print_completion)
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")


def print_completion(given: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    from irc.cli.commands import whole_parser

    shtab_: Any = shtab  # its types are partial
    parser = whole_parser()
    _complete_files(parser, shtab_.FILE)
    emit(shtab_.complete(parser, given.shell))
    return 0


def _complete_files(parser: argparse.ArgumentParser, files: Any) -> None:
    """Say of all options and arguments that are files that they are, in subcommands too."""
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]  # there is no other way, and shtab does so
        if isinstance(action.metavar, str) and action.metavar.rpartition("=")[2].partition(".")[0] in _FILES:
            action.complete = files  # type: ignore[attr-defined]  # which shtab reads
        choices = cast("Any", action.choices)
        if isinstance(choices, dict):
            for inner in cast("dict[str, argparse.ArgumentParser]", choices).values():
                _complete_files(inner, files)
