"""Settings for the whole suite."""

from hypothesis import settings

# No deadline: how long an example takes says nothing about whether it is right, and machines are shared.
settings.register_profile("irc", deadline=None, print_blob=True)
settings.load_profile("irc")
