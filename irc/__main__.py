"""``python -m irc``, as the command ``irc``."""

import sys

from irc.cli import main

sys.exit(main())
