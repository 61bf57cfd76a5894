"""Working on large graphs without the garbage collector in the way."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Generator[None]:
    """Switch the cyclic garbage collector off while a graph is read, analysed or transformed.

    Nearly all that these allocate stays alive, so the collector would only
    walk it again and again: half of the time of parsing 100,000 nodes. What
    passes erase, which is in cycles, is freed after they are done.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
