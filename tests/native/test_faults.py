"""Native code touches nothing but its operands and results: the files ``faults_*.py`` pass without a fault."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("llvmlite")

HERE = Path(__file__).parent


@pytest.mark.parametrize("cpu", ["", pytest.param("x86-64", marks=pytest.mark.slow)])
def test_nothing_else_is_touched(cpu: str) -> None:
    files = sorted(map(str, HERE.glob("faults_*.py")))
    assert len(files) >= 7
    command = [sys.executable, "-m", "pytest", "-v", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *files]
    given = {**os.environ, "IRC_NATIVE_CPU": cpu, "PYTEST_ADDOPTS": ""}
    found = subprocess.run(command, env=given, capture_output=True, text=True, cwd=HERE.parent.parent)
    assert found.returncode == 0, (found.stdout + found.stderr)[-8000:]  # of a fault, the test that was running


@pytest.mark.parametrize("end", ["first", "last"])
@pytest.mark.parametrize("index", [-1, 5])
def test_a_stray_access_ends_the_process(end: str, index: int) -> None:
    reads = f"""
import ctypes, numpy as np
from tests.native.guarded import guarded
x = guarded(np.arange(5, dtype=np.uint8), {end!r})
print(ctypes.string_at(x.ctypes.data, 5).hex(), flush=True)
ctypes.string_at(x.ctypes.data + {index}, 1)
"""
    found = subprocess.run([sys.executable, "-c", reads], capture_output=True, text=True, cwd=HERE.parent.parent)
    is_beyond = (end == "first") == (index < 0)
    assert found.stdout.split() == [np.arange(5, dtype=np.uint8).tobytes().hex()]
    assert found.returncode == (-signal.SIGSEGV if is_beyond else 0), found.stderr


@pytest.mark.parametrize("is_empty", [True, False])
def test_writing_to_what_is_read_only_ends_the_process(is_empty: bool) -> None:
    writes = f"""
import ctypes, numpy as np
from tests.native.guarded import guarded
x = guarded(np.zeros({0 if is_empty else 5}, np.uint8), "last", is_read_only=True)
ctypes.memset(x.ctypes.data, 0, 1)
"""
    found = subprocess.run([sys.executable, "-c", writes], capture_output=True, text=True, cwd=HERE.parent.parent)
    assert found.returncode == -signal.SIGSEGV, found.stderr
