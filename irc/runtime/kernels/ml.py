"""Operators of ai.onnx.ml on features, and what linear models and others make of scores.

The other operators of ``ai.onnx.ml`` are computed by the fallback.

What the specification leaves open, the scores of a classifier with one row of
coefficients for two classes, is as in ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.ir.limits import MAX_ELEMENTS
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.softmax import softmax
from irc.runtime.kernels.support import AnyDType, Array, c_order, check_size

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


# -- features ------------------------------------------------------------------


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


# -- scores --------------------------------------------------------------------


Transform = Callable[[Array], Array]


def _none(x: Array) -> Array:
    return x


def _logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _softmax(x: Array) -> Array:
    return softmax(x, -1)


def _softmax_zero(x: Array) -> Array:
    """Softmax in which scores of 0 stay 0."""
    top = x.max(axis=-1, keepdims=True, initial=-np.inf)
    powers = np.exp(x - top)
    np.multiply(x, np.exp(-top), out=powers, where=np.abs(x) <= 1e-7)
    total = np.sum(powers, axis=-1, keepdims=True)
    return np.divide(powers, total, out=powers, where=total != 0)


def _probit(x: Array) -> Array:
    """The quantile of the normal distribution: NaN outside [0, 1]."""
    quantile = NormalDist().inv_cdf
    ends = {0.0: -np.inf, 1.0: np.inf}
    found = [quantile(p) if 0 < p < 1 else ends.get(p, np.nan) for p in x.reshape(-1).tolist()]
    return np.array(found, np.float64).reshape(x.shape)


TRANSFORMS: dict[str, Transform] = {
    "NONE": _none,
    "SOFTMAX": _softmax,
    "LOGISTIC": _logistic,
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}
"""In the order of TreeEnsemble's numbers for them."""


def post_transform(node: Node) -> str:
    """The node's ``post_transform`` by name; Error for an unknown name."""
    given: Any = node.attributes.get("post_transform", "NONE")
    name = list(TRANSFORMS)[given] if isinstance(given, int) and 0 <= given < len(TRANSFORMS) else given
    if name not in TRANSFORMS:
        raise Error("IRC320", f"post_transform is {given!r}; it must be one of {', '.join(TRANSFORMS)}")
    return name


def class_labels(node: Node, ints: str) -> Array:
    """The labels of classes, [classes]: the attribute ``ints``, or ``classlabels_strings``."""
    numbers: list[int] = node.attributes.get(ints) or []
    words: list[str] = node.attributes.get("classlabels_strings") or []
    if bool(numbers) == bool(words):
        raise Error("IRC320", f"exactly one of {ints} and classlabels_strings must be given")
    return np.array(numbers, np.int64) if numbers else np.array(words, object)


# -- linear models -------------------------------------------------------------


def floats(node: Node, name: str) -> Array:
    """An attribute's numbers; none if it is absent."""
    return np.array(node.attributes.get(name) or [], np.float64)


@kernel("ai.onnx.ml::LinearRegressor")
def linear_regressor(node: Node) -> Kernel:
    """Of x [n, features] the transformed ``x @ coefficients + intercepts``, [n, targets], as float32."""
    targets: int = node.attributes.get("targets", 1)
    coefficients = np.array(node.attributes.get("coefficients", []), np.float64)
    intercepts = np.array(node.attributes.get("intercepts") or [0.0], np.float64)
    if targets < 1 or coefficients.size % targets or intercepts.size not in (1, targets):
        given = f"{coefficients.size} coefficients and {intercepts.size} intercepts"
        raise Error("IRC320", f"{given} do not fit {targets} targets")
    if targets > MAX_ELEMENTS:  # which go with no coefficients at all
        raise Error("IRC324", f"a number is too large, that of targets: {targets}")
    weights = coefficients.reshape(targets, -1).T
    transform = TRANSFORMS[post_transform(node)]

    def run(x: Array) -> Array:
        rows = as_rows(x)
        if rows.shape[1] != len(weights):
            raise Error(
                "IRC421", f"an input of shape {list(x.shape)} does not fit {len(weights)} coefficients a target"
            )
        return transform(rows.astype(np.float64) @ weights + intercepts).astype(np.float32, order="C")

    return run


@kernel("ai.onnx.ml::LinearClassifier")
def linear_classifier(node: Node) -> Kernel:
    """Of x [n, features] the best class of each row, [n], and the transformed scores, [n, classes]."""
    labels = class_labels(node, "classlabels_ints")
    coefficients, intercepts, name = floats(node, "coefficients"), floats(node, "intercepts"), post_transform(node)
    classes = len(labels)
    # One row of coefficients tells two classes apart; without intercepts the number of features decides.
    transform, logistic = TRANSFORMS[name], TRANSFORMS["LOGISTIC"]

    def run(x: Array) -> tuple[Array, Array]:
        rows = as_rows(x)
        features = rows.shape[1]
        single = classes == 2 and coefficients.size == features
        models = 1 if single else classes
        if coefficients.size != models * features or intercepts.size not in (0, models):
            given = f"{coefficients.size} coefficients and {intercepts.size} intercepts"
            raise Error("IRC421", f"{given} do not fit {classes} classes and an input of shape {list(x.shape)}")
        scores = rows.astype(np.float64) @ coefficients.reshape(models, -1).T
        # A class is chosen by the scores as they are returned: of two that are equal then, the first.
        scores = (scores + intercepts if intercepts.size else scores).astype(np.float32).astype(np.float64)
        if not single:
            return labels[np.argmax(scores, axis=1)], transform(scores).astype(np.float32, order="C")
        if name == "PROBIT":
            raise Error("IRC320", "the scores of two classes by one row of coefficients have no PROBIT")
        score = scores[:, 0]
        best = labels[(score > 0).astype(np.int64)]
        pair = (logistic(-score), logistic(score)) if name == "LOGISTIC" else (1 - score, score)
        return best, np.stack(pair, axis=1).astype(np.float32)

    return run
