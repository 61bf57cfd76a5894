"""How many processors this process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def usable_processors() -> int:
    """The processors that this process may run on, or fewer, if it does not get the time to keep all of them busy.

    In a container with a share of two processors' time, more threads than two would be stopped whenever that is used
    up, all of them at once and in the middle of a product.
    """
    number = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(number, share_of_time() or number)


@cache
def share_of_time() -> int | None:
    """So many processors the time keeps busy that this process gets, at least 1; None: it is not limited.

    Source: Linux's documentation of control groups, ``cpu.max`` of version 2, ``cpu.cfs_quota_us`` of version 1.
    """
    shares = [quota / period for quota, period in _limits(_GROUPS, _OWN) if quota > 0 and period > 0]
    return math.ceil(min(shares)) if shares else None


def _limits(groups: Path, own: Path) -> Iterator[tuple[int, int]]:
    """The microseconds that a process may run in each period of so many, by any of the control groups it is in.

    In a container, the names of its groups are those outside, where it cannot look; but then the first group that it
    sees is its own.
    """
    for line in _read(own).splitlines():
        _, controllers, name = line.split(":", 2)
        if not controllers:
            top, files = groups, ("cpu.max",)
        elif "cpu" in controllers.split(","):
            top, files = groups / controllers, ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        else:
            continue
        path = PurePosixPath(name.lstrip("/"))
        for folder in (path, *path.parents):  # a group has no more than those around it
            numbers = " ".join(_read(top / folder / file) for file in files).split()
            if len(numbers) == 2 and all(number.isdecimal() for number in numbers):  # not "max", not -1
                yield int(numbers[0]), int(numbers[1])


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except (OSError, ValueError):  # another system, or another version
        return ""
