"""What a result must say about the machine it was measured on, and where results are kept."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any

OUT = Path(__file__).parent / "out"
"""Where results go: one JSON file a benchmark, and plots."""

_PACKAGES = ("numpy", "onnx", "bitarray", "onnxruntime", "onnxscript", "onnxslim", "onnxsim", "onnxoptimizer", "torch")


def machine() -> dict[str, Any]:
    """Processor, operating system, Python, packages, the commit, how busy the machine is, and how fast it is."""
    return {
        "processor": _processor(),
        "processors": os.cpu_count(),
        "system": system(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {name: v for name in _PACKAGES if (v := version(name)) is not None},
        "commit": _commit(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "yardstick": yardstick(),
    }


def system() -> str:
    """The operating system, the processor's architecture and the C library; the kernel may be updated."""
    return " ".join(filter(None, (platform.system(), platform.machine(), *platform.libc_ver())))


def version(package: str) -> str | None:
    """The installed version of a package; None if it is not there."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def title(name: str) -> str:
    """What a contender is called in results: a module's name with the version of its package, others by their name."""
    found = version(name.split(".")[0]) if name.replace(".", "").isidentifier() else None
    return name if found is None else f"{name} {found}"


def yardstick() -> float:
    """Processor seconds of a fixed piece of plain Python: what results of two machines are compared by."""
    samples: list[float] = []
    for _ in range(5):
        begin = time.process_time()
        table: dict[int, tuple[int, ...]] = {}
        for i in range(100_000):
            table[i] = (*table.get(i - 1, ()), i)[-3:]
        samples.append(time.process_time() - begin)
    return median(samples)


def save(name: str, result: dict[str, Any]) -> Path:
    """Write a result, with facts about the machine, as ``out/NAME.json``."""
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), **result}, indent=1) + "\n")
    return path


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
