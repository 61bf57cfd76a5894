"""How many processors a process may use: what control groups of Linux say."""

import os
from pathlib import Path

import pytest

from irc.runtime import threads

CASES = {
    "none of Linux": ("", {}, None),
    "without limit": ("0::/", {"cpu.max": "max 100000"}, None),
    "a container": ("0::/", {"cpu.max": "200000 100000"}, 2),
    "a container, whose name is that outside": ("0::/docker/4aa8", {"cpu.max": "150000 100000"}, 2),
    "a small share": ("0::/", {"cpu.max": "5000 100000"}, 1),
    "the least of the groups around": (
        "0::/a/b/c",
        {"a/b/c/cpu.max": "max 100000", "a/b/cpu.max": "300000 100000", "a/cpu.max": "800000 100000"},
        3,
    ),
    "version 1": (
        "4:memory:/x\n1:cpu,cpuacct:/y",
        {"cpu,cpuacct/y/cpu.cfs_quota_us": "400000", "cpu,cpuacct/y/cpu.cfs_period_us": "100000", "cpu.max": "1 1"},
        4,
    ),
    "version 1 without limit": ("1:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
    "both versions": (
        "1:cpu:/\n0::/",
        {"cpu/cpu.cfs_quota_us": "100", "cpu/cpu.cfs_period_us": "50", "cpu.max": "50 10"},
        2,
    ),
    "something else": ("0::/", {"cpu.max": "a b"}, None),
    "no time": ("0::/", {"cpu.max": "1 0"}, None),
}


def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    if own:
        (tmp_path / "own").write_text(own + "\n")
    monkeypatch.setattr(threads, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(threads, "_OWN", tmp_path / "own")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8), raising=False)
    threads.share_of_time.cache_clear()


@pytest.fixture(autouse=True)
def as_before():
    yield
    threads.share_of_time.cache_clear()


@pytest.mark.parametrize("case", CASES)
def test_the_time_that_a_process_gets(case, tmp_path, monkeypatch):
    own, files, share = CASES[case]
    limited(tmp_path, monkeypatch, own, files)
    assert threads.share_of_time() == share
    assert threads.usable_processors() == (share or 8)


def test_more_time_than_processors(tmp_path, monkeypatch):
    limited(tmp_path, monkeypatch, "0::/", {"cpu.max": "1600000 100000"})
    assert threads.usable_processors() == 8
