"""Cases of bad input: exit status 1, one message that says what, where and what to do, nothing written."""

import re
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.helpers import GRAPH, Command, small_model
from tests.tables import rows

Case = Callable[[Command], list[str]]
Cases = dict[str, tuple[str, Case]]
"""Name -> what the message must say, and what makes the files and gives the arguments."""


def case_of(cases: Cases) -> Callable[[str], Callable[[Case], Case]]:
    """A decorator that enters a case into ``cases``, given what the message must say."""

    def case(says: str) -> Callable[[Case], Case]:
        def register(make: Case) -> Case:
            cases[make.__name__] = (says, make)
            return make

        return register

    return case


def commands(text: str) -> Cases:
    """Cases of commands on ``m.onnx`` and ``x.ir``, which are there: rows of name, command, what the message says."""
    return {name: (says, _given({}, command)) for name, command, says in rows(text)}


def contents(file: str, command: str, given: dict[str, tuple[Any, ...]]) -> Cases:
    """Cases of one command on what ``file`` holds: name -> the contents, what the message says, another command.

    Contents that are a function are made by it, given what runs commands.
    """
    return {name: (says, _given({file: held}, *more or [command])) for name, (held, says, *more) in given.items()}


def _given(files: dict[str, Any], command: str) -> Case:
    def make(irc: Command) -> list[str]:
        for name, held in ({"m.onnx": small_model(), "x.ir": GRAPH} | files).items():
            irc.write(name, held(irc) if callable(held) else held)
        return shlex.split(command)

    return make


def listing(command: Command) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(command.folder)): path.read_bytes() if path.is_file() else None
        for path in command.folder.rglob("*")
    }


def assert_refused(command: Command, argv: list[str], says: str) -> None:
    before = listing(command)
    result = command(*argv)
    assert result.status == 1, result
    assert result.out == ""
    assert result.err.startswith("irc: IRC"), result.err
    assert result.err.count("IRC") == 1, f"one message, not several:\n{result.err}"
    assert "Traceback" not in result.err
    assert re.search(says, result.err, re.DOTALL), f"{result.err!r} does not say {says!r}"
    assert listing(command) == before


def refusals(cases: Cases) -> Callable[[str, Command], None]:
    """The test that all of ``cases``, which are complete, are refused."""

    @pytest.mark.parametrize("name", cases)
    def test(name: str, irc: Command) -> None:
        says, make = cases[name]
        assert_refused(irc, make(irc), says)

    return test
