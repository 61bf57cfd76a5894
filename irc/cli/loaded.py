"""Files of Python that the command line names: their code is run, so that what it registers can be used.

Nothing else has files run: no model, and no file that is merely in the folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType, ModuleType

from irc.errors import Error, cannot, described, last_line, package_of
from irc.files import open_regular
from irc.offers import packages

_PATHS: set[str] = set()
"""Of files that are, or were, run, as they were given."""


def load(path: str) -> None:
    """Run the code of a file as a module, once in the life of the program.

    The module is called by its whole path, so that nothing imports it by mistake for another, nor is its folder one
    that modules are imported from.

    Raises:
        Error: IRC502 if the file cannot be read, IRC304 if its code fails; what irc raises meanwhile. These name the
            file and line.
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
    """Let what comes of the code of loaded files, and of plug-ins, be an Error with ``code`` that names file and line.

    Args:
        code: of what is no Error of irc's.
        path: the file that is being loaded: then Errors of irc's come of it, too, and what has no line in it.
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
    """The line that was last come to before ``error`` of a loaded file or a plug-in; "" if there is none."""
    if isinstance(error, SyntaxError) and error.lineno is not None and error.filename in _PATHS:
        return f"{error.filename}:{error.lineno}"
    offering = packages()

    def counts(frame: FrameType) -> bool:
        return frame.f_code.co_filename in _PATHS or package_of(frame.f_globals.get("__name__")) in offering

    return last_line(error, counts)
