"""``python -m irc.cli``."""

import sys

from irc.cli import main

sys.exit(main())
