"""Settings for the whole suite."""

import os
import sys

from hypothesis import settings

if os.environ.get("IRC_BACKEND") == "numpy":
    sys.modules["llvmlite"] = None  # type: ignore[assignment]  # as if it were not installed

# No deadline: how long an example takes says nothing about whether it is right, and machines are shared.
settings.register_profile("irc", deadline=None, print_blob=True)
settings.load_profile("irc")
