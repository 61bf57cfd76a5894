"""Python files named on the command line: their code is run, so that what it registers can be used.

Nothing else makes irc run a file: not a model, and not a file that is merely in the folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType, ModuleType

from irc.errors import Error, cannot, described, last_line, package_of
from irc.support.files import open_regular
from irc.support.plugins import packages

_PATHS: set[str] = set()
"""Of files that are, or were, run, as they were given."""


def load(path: str) -> None:
    """Run the code of a file as a module, once in the life of the program.

    The module's name is its whole path, so that no import takes it for another module. Its folder is not added to the
    folders that modules are imported from.

    Raises:
        Error: IRC502 if the file cannot be read, IRC304 if its code fails; errors that irc raises meanwhile. These name
            the file and line.
    """
    try:
        name = os.path.realpath(path)
        if name in sys.modules:
            return
        with open_regular(path) as file:
            text = file.read()
    except (OSError, ValueError) as error:  # the latter for names that no file can have
        raise cannot("IRC502", "read the file", error, path) from None
    module = ModuleType(name)
    module.__file__ = path
    _PATHS.add(path)
    sys.modules[name] = module
    with blamed("IRC304", path):
        try:
            exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
        except BaseException:
            del sys.modules[name]
            raise


@contextmanager
def blamed(code: str = "IRC305", path: str = "") -> Generator[None]:
    """Turn errors from the code of loaded files and plug-ins into an Error with ``code`` that names file and line.

    Args:
        code: the code for errors that are not irc's own.
        path: the file that is being loaded, if one is: then irc's own errors are blamed on it too, and errors without a
            line.
    """
    try:
        yield
    except (BrokenPipeError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, Error) and not path:
            raise
        place = _place(error) or path
        if not place:
            raise
        if isinstance(error, Error):
            raise Error(error.code, error.message, f"{place}, {error.where}".removesuffix(", ")) from error
        raise Error(code, described(error), place) from error


def _place(error: BaseException) -> str:
    """The last line of a loaded file or plug-in that ran before ``error``; "" if there is none."""
    if isinstance(error, SyntaxError) and error.lineno is not None and error.filename in _PATHS:
        return f"{error.filename}:{error.lineno}"
    offering = packages()

    def counts(frame: FrameType) -> bool:
        return frame.f_code.co_filename in _PATHS or package_of(frame.f_globals.get("__name__")) in offering

    return last_line(error, counts)
