"""Working on large graphs without the garbage collector in the way."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Generator[None]:
    """Switch the cyclic garbage collector off while a graph is read, analysed or transformed.

    Nearly all that these steps allocate stays alive, so the collector would only
    walk it again and again: half of the time of parsing 100,000 nodes. Nodes that
    passes erase, which are in cycles, are freed after the passes are done.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
