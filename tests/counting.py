"""How much work something is, exactly: by the calls of functions, or the alias analyses, that it takes."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from irc.alias import AliasDbBuilder
from irc.ir.graph import gc_paused


def calls(action: Callable[[], Any]) -> int:
    """How many functions ``action`` calls, and how often it returns from them."""
    found = 0

    def count(*_: Any) -> None:
        nonlocal found
        found += 1

    with gc_paused():  # what it calls is not the action's
        sys.setprofile(count)
        try:
            action()
        finally:
            sys.setprofile(None)
    return found


def analyses() -> AbstractContextManager[Any]:
    """Gives a mock whose ``call_count`` is how many alias analyses have been built since."""
    return patch.object(AliasDbBuilder, "freeze", autospec=True, side_effect=AliasDbBuilder.freeze)
