"""Downloading the packages that ship the models, and taking the models out."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.facts import OUT
from benchmarks.zoo.models import Entry

CACHE = OUT / "zoo"
"""Where the models lie once they are fetched: ``NAME.onnx``. Git ignores it."""


def model_path(entry: Entry) -> Path:
    """Where the model lies, or will."""
    return CACHE / f"{entry.name}.onnx"


def is_fetched(entry: Entry) -> bool:
    """Whether the model lies in the cache, with the contents that the manifest states."""
    path = model_path(entry)
    return path.is_file() and path.stat().st_size == entry.bytes and _sha256(path.read_bytes()) == entry.sha256


def fetch(entries: Sequence[Entry]) -> list[str]:
    """Download what is missing. Returns a line for each model that could not be had, or is not what was expected."""
    missing = [entry for entry in entries if not is_fetched(entry)]
    wrong: list[str] = []
    for registry, package, version in dict.fromkeys((e.registry, e.package, e.version) for e in missing):
        wanted = [e for e in missing if (e.registry, e.package, e.version) == (registry, package, version)]
        with tempfile.TemporaryDirectory() as folder:
            print(f"fetching {package} {version} ({registry})", file=sys.stderr)
            try:
                archive = _download(registry, package, version, Path(folder))
            except (OSError, subprocess.CalledProcessError) as error:
                said = getattr(error, "stderr", "") or str(error)
                wrong += [f"{entry.name}: {package} {version} cannot be had: {said.strip()[-300:]}" for entry in wanted]
                continue
            wrong += [line for entry in wanted if (line := _take(entry, archive))]
    return wrong


def _download(registry: str, package: str, version: str, folder: Path) -> Path:
    """The archive of a package: a wheel of PyPI's, of which nothing is run, or npm's tar file."""
    if registry == "PyPI":
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary", ":all:", "--dest", str(folder), f"{package}=={version}"]
    else:
        npm = shutil.which("npm")
        if npm is None:
            raise OSError("npm is not installed")
        command = [npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", str(folder)]
        command.append(f"{package}@{version}")
    subprocess.run(command, check=True, capture_output=True, text=True)
    (archive,) = folder.iterdir()
    return archive


def _take(entry: Entry, archive: Path) -> str:
    """Put the model into the cache. Returns what is wrong with it, or ""."""
    try:
        data = _member(archive, entry.path)
    except KeyError:
        return f"{entry.name}: {archive.name} has no {entry.path}"
    if len(data) != entry.bytes or _sha256(data) != entry.sha256:
        return f"{entry.name}: {entry.path} of {archive.name} is not the file of the manifest: its SHA-256 differs"
    CACHE.mkdir(parents=True, exist_ok=True)
    model_path(entry).write_bytes(data)
    return ""


def _member(archive: Path, path: str) -> bytes:
    """The bytes of one file in an archive; KeyError if it has none of that name."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(path)
    with tarfile.open(archive) as tar:
        file = tar.extractfile(path)
        if file is None:
            raise KeyError(path)
        return file.read()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
