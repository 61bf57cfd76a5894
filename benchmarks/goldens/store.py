"""The file of goldens: one ``.npz`` with an index in JSON and all arrays' bytes, so that nothing in it is code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.goldens.outcome import Array, Outcome, dtype_of, fingerprint, plain_bytes

LARGEST = 1 << 24
"""Bytes of an array that is kept itself. Of larger ones only the digest is."""


class Writer:
    """Collects programs and outcomes, then writes them.

    Args:
        about: facts about the tree and the machine.
    """

    def __init__(self, about: dict[str, Any]) -> None:
        self._blob = bytearray()
        self._index: dict[str, Any] = {"about": about, "programs": {}, "outcomes": {}}

    def program(self, name: str, text: str, weights: dict[str, Array], inputs: dict[str, Any]) -> None:
        """Keep a program that no later tree may generate again. ``inputs``: name -> (array, whether transposed)."""
        self._index["programs"][name] = {
            "text": text,
            "weights": {key: self._put(value) for key, value in weights.items()},
            "inputs": {key: [self._put(value), turned] for key, (value, turned) in inputs.items()},
        }

    def outcome(self, name: str, inputs: str, found: Outcome) -> None:
        """Keep what a program did on inputs of this digest."""
        self._index["outcomes"][name] = {
            "inputs": inputs,
            "error": found.error,
            "unsteady": found.unsteady,
            "counters": found.counters,
            "leaves": {path: self._put(leaf) for path, leaf in found.leaves.items()},
        }

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        index = np.frombuffer(json.dumps(self._index).encode(), np.uint8)
        unfinished = path.with_name(path.name + ".unfinished")
        with unfinished.open("wb") as file:
            np.savez_compressed(file, index=index, blob=np.frombuffer(bytes(self._blob), np.uint8))
        unfinished.replace(path)

    def _put(self, leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return {"value": leaf, "digest": fingerprint(leaf)}
        data = plain_bytes(leaf)
        entry = {"dtype": leaf.dtype.name, "shape": list(leaf.shape), "digest": fingerprint(leaf)}
        if len(data) <= LARGEST and leaf.dtype.kind not in "OSUT":
            entry |= {"at": len(self._blob), "bytes": len(data)}
            self._blob += data
        return entry


class Reader:
    """A file that `Writer` wrote.

    Attributes:
        about: facts about the tree and the machine it was recorded on.
        programs: the programs that were kept.
        outcomes: what was recorded, by name of program and variant.
    """

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as file:
            index, self._blob = json.loads(file["index"].tobytes()), file["blob"].tobytes()
        self.about: dict[str, Any] = index["about"]
        self.programs: dict[str, Any] = index["programs"]
        self.outcomes: dict[str, Any] = index["outcomes"]

    def array(self, entry: dict[str, Any]) -> Array | None:
        """The array of an entry; None if only its digest was kept."""
        if "at" not in entry:
            return None
        data = self._blob[entry["at"] : entry["at"] + entry["bytes"]]
        return np.frombuffer(data, dtype_of(entry["dtype"])).reshape(entry["shape"])
