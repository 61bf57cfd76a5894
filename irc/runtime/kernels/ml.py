"""The operators of classical machine learning that onnx.reference lacks or has wrong: maps, encoders, Normalizer.

The other operators of ``ai.onnx.ml`` are computed by the fallback.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import AnyDType, Array

if TYPE_CHECKING:
    from irc.ir import Node

DOMAIN = "ai.onnx.ml"
_DTYPES: dict[str, AnyDType] = {
    "floats": np.dtype(np.float32),
    "int64s": np.dtype(np.int64),
    "strings": np.dtype(object),
}
_DEFAULTS: dict[str, Any] = {"float": -0.0, "int64": -1, "string": "_Unused"}


def _given(node: Node, prefix: str) -> tuple[str, list[Any]]:
    """Which of the attributes ``prefix_floats``, ``prefix_int64s``, ``prefix_strings`` is given, and its values."""
    found: list[tuple[str, list[Any]]] = []
    for form in _DTYPES:
        values: list[Any] | None = node.attributes.get(f"{prefix}_{form}")
        if values:
            found.append((form, values))
    if len(found) != 1:
        raise Error("IRC320", f"exactly one of {', '.join(f'{prefix}_{form}' for form in _DTYPES)} must be given")
    return found[0]


def _default(node: Node, form: str) -> Any:
    single = form.removesuffix("s")
    return node.attributes.get(f"default_{single}", _DEFAULTS[single])


def _mapped(keys: Sequence[Any], values: Sequence[Any], default: Any, dtype: AnyDType) -> Kernel:
    """A kernel that replaces each element that is a key by its value, any other by the default."""
    if len(keys) != len(values):
        raise Error("IRC320", f"there are {len(keys)} keys and {len(values)} values")
    table: dict[Any, Any] = {}
    for key, value in zip(keys, values, strict=True):
        table.setdefault(key, value)
    at_nan = next((v for k, v in zip(keys, values, strict=True) if k != k), default)

    def run(x: Array) -> Array:
        found: Array = np.empty(x.size, dtype)
        found[:] = [table.get(v, default) if v == v else at_nan for v in x.reshape(-1).tolist()]
        return found.reshape(x.shape)

    return run


@kernel(f"{DOMAIN}::LabelEncoder", since=2)
def label_encoder(node: Node) -> Kernel:
    """Keys, values and default are lists, or from version 4 on tensors. NaN as a key stands for every NaN."""
    keys = _tensor(node, "keys_tensor")
    values = _tensor(node, "values_tensor")
    default = _tensor(node, "default_tensor")
    key_list = _given(node, "keys")[1] if keys is None else keys.tolist()
    if values is None:
        form, value_list = _given(node, "values")
        return _mapped(key_list, value_list, _default(node, form), _DTYPES[form])
    form = {"f": "floats", "i": "int64s"}.get(values.dtype.kind, "strings")
    dtype = _DTYPES["strings"] if form == "strings" else values.dtype
    return _mapped(key_list, values.tolist(), _default(node, form) if default is None else default.item(), dtype)


def _tensor(node: Node, name: str) -> Array | None:
    return node.attributes[name].numpy() if name in node.attributes else None


@kernel(f"{DOMAIN}::LabelEncoder", since=1)
def label_encoder_of_classes(node: Node) -> Kernel:
    classes: list[str] = node.attributes["classes_strings"]
    return _both_ways(node, range(len(classes)), classes)


@kernel(f"{DOMAIN}::CategoryMapper")
def category_mapper(node: Node) -> Kernel:
    return _both_ways(node, node.attributes["cats_int64s"], node.attributes["cats_strings"])


def _both_ways(node: Node, numbers: Sequence[int], names: Sequence[str]) -> Kernel:
    """Names to numbers or numbers to names, as the input is."""
    to_number = _mapped(names, numbers, _default(node, "int64s"), _DTYPES["int64s"])
    to_name = _mapped(numbers, names, _default(node, "strings"), _DTYPES["strings"])

    def run(x: Array) -> Array:
        return to_name(x) if x.dtype.kind in "iu" else to_number(x)

    return run


@kernel(f"{DOMAIN}::ZipMap")
def zip_map(node: Node) -> Kernel:
    """Scores [n, classes] as a sequence of maps from class label to score; of one row [classes], of one map."""
    labels: list[Any] = node.attributes.get("classlabels_int64s") or node.attributes.get("classlabels_strings") or []

    def run(x: Array) -> list[dict[Any, float]]:
        rows = x.reshape(1, -1) if x.ndim == 1 else x
        if rows.ndim != 2 or rows.shape[1] != len(labels):
            raise Error("IRC421", f"scores of shape {list(x.shape)} do not fit {len(labels)} class labels")
        return [dict(zip(labels, row, strict=True)) for row in rows.tolist()]

    return run


@kernel(f"{DOMAIN}::CastMap")
def cast_map(node: Node) -> Kernel:
    """The values of a map in the order of its keys, [1, n]; sparse: each where its key says, [1, max_map]."""
    to = node.attributes.get("cast_to", "TO_FLOAT")
    types: dict[str, Any] = {"TO_FLOAT": (np.float32, float), "TO_INT64": (np.int64, int), "TO_STRING": (object, str)}
    if to not in types:
        raise Error("IRC320", f"cast_to is {to!r}; it must be one of {', '.join(types)}")
    dtype, convert = types[to]
    sparse = node.attributes.get("map_form", "DENSE") == "SPARSE"
    size: int = node.attributes.get("max_map", 1)
    if sparse and not 0 <= size < 1 << 30:
        raise Error("IRC320", f"max_map is {size}")

    def run(pairs: dict[int, Any]) -> Array:
        ordered = sorted(pairs.items())
        try:
            if not sparse:
                found = np.empty(len(ordered), dtype)
                found[:] = [convert(value) for _, value in ordered]
                return found[None]
            found = np.full(size, "" if dtype is object else 0, dtype)
            for key, value in ordered:
                if not 0 <= key < size:
                    raise Error("IRC423", f"the key {key} is not between 0 and max_map {size}")
                found[key] = convert(value)
            return found[None]
        except ValueError as error:
            raise Error("IRC424", f"a value of the map cannot be cast: {error}") from None

    return run


@kernel(f"{DOMAIN}::DictVectorizer")
def dict_vectorizer(node: Node) -> Kernel:
    """The values of a map in the order of a vocabulary, [n]; 0, or the empty string, where the map has none."""
    words: list[str] | None = node.attributes.get("string_vocabulary")
    vocabulary: list[Any] = words or node.attributes.get("int64_vocabulary") or []
    if not vocabulary or (words and node.attributes.get("int64_vocabulary")):
        raise Error("IRC320", "exactly one of string_vocabulary and int64_vocabulary must be given")

    def run(pairs: dict[Any, Any]) -> Array:
        kinds: set[type[Any]] = {type(value) for value in pairs.values()}
        if kinds <= {str} and kinds:
            return np.array([pairs.get(word, "") for word in vocabulary], object)
        dtype = np.int64 if kinds == {int} else np.float64 if kinds == {np.float64} else np.float32
        return np.array([pairs.get(word, 0) for word in vocabulary], dtype)

    return run


@kernel(f"{DOMAIN}::Normalizer")
def normalizer(node: Node) -> Kernel:
    """Each row divided by its largest element, its sum of sizes or its length; rows where that is 0 stay."""
    norm = node.attributes.get("norm", "MAX")
    if norm not in _NORMS:
        raise Error("IRC320", f"norm is {norm!r}; it must be one of {', '.join(_NORMS)}")
    measure = _NORMS[norm]

    def run(x: Array) -> Array:
        if x.ndim not in (1, 2):
            raise Error("IRC421", f"Normalizer needs [n, features] or [features]; the shape is {list(x.shape)}")
        wide = x.astype(np.float64)
        size = measure(wide) if x.size else np.ones(())
        return np.asarray(wide / np.where(size == 0, 1, size)).astype(np.float32)

    return run


def _largest(x: Array) -> Array:
    return x.max(axis=-1, keepdims=True)


def _total(x: Array) -> Array:
    return np.absolute(x).sum(axis=-1, keepdims=True)


def _length(x: Array) -> Array:
    return np.sqrt(np.square(x).sum(axis=-1, keepdims=True))


_NORMS: dict[str, Callable[[Array], Array]] = {"MAX": _largest, "L1": _total, "L2": _length}
