"""The operators of ``ai.onnx.ml`` that prepare features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, c_order, check_size

if TYPE_CHECKING:
    from irc.ir import Node

DOMAIN = "ai.onnx.ml"


def as_rows(x: Array) -> Array:
    """``x`` as [n, features]: a vector is one row."""
    if x.ndim not in (1, 2):
        raise Error("IRC421", f"the input has shape {list(x.shape)}; it must be [n, features] or [features]")
    return x.reshape(1, -1) if x.ndim == 1 else x


def _per_feature(values: Array, name: str, x: Array) -> Array:
    if values.size not in (1, x.shape[-1] if x.ndim else 1):
        raise Error("IRC421", f"{name} has {values.size} values for an input of shape {list(x.shape)}")
    return values


@kernel(f"{DOMAIN}::ArrayFeatureExtractor")
def array_feature_extractor(node: Node) -> Kernel:
    """Columns by number, [..., n]; of a vector, as in ONNX Runtime, a matrix of one row."""

    def run(x: Array, columns: Array) -> Array:
        if not x.ndim:
            raise Error("IRC421", "the input is a scalar; it must have at least one dimension")
        at = columns.reshape(-1)
        if at.size and not 0 <= at.min() <= at.max() < x.shape[-1]:
            raise Error("IRC423", f"columns {at.min()} to {at.max()} are asked for; there are {x.shape[-1]}")
        found = np.take(x, at, axis=-1)
        return found[None] if x.ndim == 1 else found

    return run


@kernel(f"{DOMAIN}::Binarizer")
def binarizer(node: Node) -> Kernel:
    threshold = float(node.attributes.get("threshold", 0.0))

    def run(x: Array) -> Array:
        return c_order(np.greater(x, threshold)).astype(x.dtype)

    return run


@kernel(f"{DOMAIN}::FeatureVectorizer")
def feature_vectorizer(node: Node) -> Kernel:
    """Inputs [n, features] side by side, each cut or filled up with zeros to its number of columns, as float32."""
    widths: list[int] | None = node.attributes.get("inputdimensions")

    def run(*inputs: Array) -> Array:
        parts = [x.reshape(-1, 1) if x.ndim < 2 else x for x in inputs]
        wanted = [x.shape[1] for x in parts] if widths is None else widths
        rows = {len(x) for x in parts}
        if len(wanted) != len(parts) or len(rows) != 1 or any(x.ndim != 2 for x in parts):
            shapes = ", ".join(str(list(x.shape)) for x in inputs)
            raise Error("IRC421", f"inputs of shapes {shapes} do not make columns {wanted}")
        (count,) = rows
        check_size([count, *wanted], np.dtype(np.uint8))
        found: Array = np.zeros(check_size((count, sum(wanted)), np.dtype(np.float32)), np.float32)
        ends = np.cumsum(wanted).tolist()
        for x, width, end in zip(parts, wanted, ends, strict=True):
            used = min(width, x.shape[1])
            found[:, end - width : end - width + used] = x[:, :used]
        return found

    return run


@kernel(f"{DOMAIN}::Imputer")
def imputer(node: Node) -> Kernel:
    """Values that mean "missing" replaced, by one value or one for each feature."""
    floats: list[float] = node.attributes.get("imputed_value_floats") or []
    numbers: list[int] = node.attributes.get("imputed_value_int64s") or []
    if bool(floats) == bool(numbers):
        raise Error("IRC320", "exactly one of imputed_value_floats and imputed_value_int64s must be given")
    missing: Any = node.attributes.get("replaced_value_float" if floats else "replaced_value_int64", 0)
    values = np.array(floats or numbers)

    def run(x: Array) -> Array:
        as_rows(x)
        is_missing = np.isnan(x) if missing != missing else x == missing
        return c_order(np.where(is_missing, _per_feature(values, "imputed_value", x).astype(x.dtype), x))

    return run


@kernel(f"{DOMAIN}::OneHotEncoder")
def one_hot_encoder(node: Node) -> Kernel:
    """Of x [...] the vectors [..., categories]; of no category one of zeros, or an error."""
    categories: list[Any] = node.attributes.get("cats_int64s") or node.attributes.get("cats_strings") or []
    place = {category: i for i, category in enumerate(categories)}
    allows_none = bool(node.attributes.get("zeros", 1))

    def run(x: Array) -> Array:
        keys: list[Any] = (x if x.dtype.kind in "OU" else x.astype(np.int64)).reshape(-1).tolist()
        at = np.array([place.get(key, -1) for key in keys], np.int64)
        if not allows_none and (at < 0).any():
            raise Error("IRC424", f"{keys[int(np.argmin(at))]!r} is none of the categories")
        shape = check_size((len(keys), len(categories)), np.dtype(np.float32))
        found: Array = np.zeros(shape, np.float32)
        found[np.flatnonzero(at >= 0), at[at >= 0]] = 1
        return found.reshape(*x.shape, len(categories))

    return run


@kernel(f"{DOMAIN}::Scaler")
def scaler(node: Node) -> Kernel:
    """``(x - offset) * scale``, with one value of each or one for each feature, as float32."""
    offset, scale = (np.array(node.attributes.get(n, [d]), np.float32) for n, d in (("offset", 0.0), ("scale", 1.0)))

    def run(x: Array) -> Array:
        as_rows(x)
        moved = x - _per_feature(offset, "offset", x).astype(np.float64)
        return (moved * _per_feature(scale, "scale", x)).astype(np.float32, order="C")

    return run
