"""Why a pass leaves something as it is, said from the depth of asking whether it may change it."""


class Refused(Exception):
    """Says the reason, as words of a note; the pass that asked catches it."""
