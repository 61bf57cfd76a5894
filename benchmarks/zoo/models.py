"""The manifest: which models there are, and inputs for them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

MANIFEST = Path(__file__).parent / "zoo.json"

ANY = "*"
"""In the sizes of a model: the size of dimensions without a name of their own."""


@dataclass(frozen=True)
class Entry:
    """One model of the manifest.

    Attributes:
        name: what it is called here.
        kind: what it is, in a few words.
        registry: "PyPI" or "npm".
        package: name of the package that ships it.
        version: version of that package.
        path: where the model lies in the package's archive.
        sha256: of the model file.
        bytes: size of the model file.
        dims: choices of sizes to run it with, by the name of the dimension, `ANY` for those without one.
        inputs: Python expressions for inputs that not just any values fit, by input: of ``np``, ``rng`` (a
            ``numpy.random.Generator``), ``shape`` and ``d(name)``, the size of a dimension.
    """

    name: str
    kind: str
    registry: str
    package: str
    version: str
    path: str
    sha256: str
    bytes: int
    dims: list[dict[str, int]] = field(default_factory=list[dict[str, int]])
    inputs: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def sizes(self) -> list[dict[str, int]]:
        """The choices of sizes; one that says nothing if the model leaves none free."""
        return self.dims or [{}]


def entries(names: Iterable[str] = ()) -> list[Entry]:
    """The models of the manifest, or those of these names; ValueError if there is no such name."""
    found = {entry["name"]: Entry(**entry) for entry in json.loads(MANIFEST.read_text())}
    wanted = list(names) or list(found)
    if unknown := [name for name in wanted if name not in found]:
        raise ValueError(f"no model is called {', '.join(unknown)}: there are {', '.join(found)}")
    return [found[name] for name in wanted]


def feeds(entry: Entry, session: Any, sizes: Mapping[str, int], seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Inputs for a session of ONNX Runtime: floats are normally distributed, integers lie in [0, 4).

    They are made apart from `irc.tools.random_inputs`, as they are what irc is judged by.
    """
    rng = np.random.default_rng(seed)
    made: dict[str, np.ndarray[Any, Any]] = {}
    for value in session.get_inputs():
        shape = tuple(_size(dim, sizes) for dim in value.shape)
        dtype = _DTYPES[value.type]
        if value.name in entry.inputs:
            # An expression of the manifest, which is a part of this repository; nothing of a model is evaluated.
            scope = {"np": np, "rng": rng, "shape": shape, "d": sizes.__getitem__}
            made[value.name] = np.asarray(eval(entry.inputs[value.name], scope)).astype(dtype)
        elif dtype == np.bool_:
            made[value.name] = rng.random(shape) < 0.5
        elif np.issubdtype(dtype, np.integer):
            made[value.name] = rng.integers(0, 4, shape).astype(dtype)
        else:
            made[value.name] = rng.standard_normal(shape).astype(dtype)
    return made


def _size(dim: int | str | None, sizes: Mapping[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    return sizes.get(dim or ANY, sizes.get(ANY, 1))


_DTYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(bool)": np.bool_,
    "tensor(uint8)": np.uint8,
    "tensor(int8)": np.int8,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
}
