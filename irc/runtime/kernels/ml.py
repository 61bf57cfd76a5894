"""Operators of ai.onnx.ml, but for trees, and the steps of optimisers of ai.onnx.preview.training.

Other operators of ``ai.onnx.ml`` are computed by the fallback.

What the specification leaves open, the scores of a classifier with one row of
coefficients for two classes, the order of the scores of a support vector machine's pairs and what
becomes of them, is as in ONNX Runtime, and before that in LIBSVM (Chang and
Lin, "LIBSVM: a library for support vector machines", 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from irc.errors import Error
from irc.ir import MAX_ELEMENTS, Node
from irc.runtime.bounds import CURRENT, InnerLoops, check_work, pace
from irc.runtime.kernels.elementwise import power
from irc.runtime.kernels.registry import Kernel, Reader, always, computes, kernel, one_of
from irc.runtime.kernels.softmax import softmax
from irc.runtime.kernels.support import AnyDType, Array, c_order, check_size, scalar, shapes_of, spread_out

DOMAIN = "ai.onnx.ml"
_DTYPES: dict[str, AnyDType] = {
    "floats": np.dtype(np.float32),
    "int64s": np.dtype(np.int64),
    "strings": np.dtype(object),
}
_DEFAULTS: dict[str, Any] = {"floats": -0.0, "int64s": -1, "strings": "_Unused"}


def one_list(node: Node, *names: str) -> tuple[str, list[Any]]:
    """Which of the attributes ``names`` is given, with at least one value, and its values."""
    found = [(name, node.attributes[name]) for name in names if node.attributes.get(name)]
    if len(found) != 1:
        raise Error("IRC320", f"exactly one of {', '.join(names[:-1])} and {names[-1]} must be given")
    return found[0]


def _values(node: Node, name: str) -> tuple[list[Any], Any, AnyDType]:
    """The values of the attributes ``name_tensor``, ``name_floats``, ``name_int64s`` or ``name_strings``.

    Then what stands for anything else, by default, and the element type.
    """
    tensor, default = (_tensor(node, f"{each}_tensor") for each in (name, "default"))
    if tensor is None:
        given, values = one_list(node, *(f"{name}_{form}" for form in _DTYPES))
        form = given.removeprefix(f"{name}_")
        return values, _default(node, form), _DTYPES[form]
    form = {"f": "floats", "i": "int64s"}.get(tensor.dtype.kind, "strings")
    dtype = _DTYPES["strings"] if form == "strings" else tensor.dtype
    return tensor.tolist(), _default(node, form) if default is None else default.item(), dtype


def _tensor(node: Node, name: str) -> Array | None:
    return node.attributes[name].numpy() if name in node.attributes else None


def _default(node: Node, form: str) -> Any:
    return node.attributes.get(f"default_{form.removesuffix('s')}", _DEFAULTS[form])


class _Map:
    """Replaces elements that are keys by values, of equal keys the first's; others by the default.

    NaN as a key stands for every NaN.
    """

    def __init__(self, keys: Sequence[Any], values: Sequence[Any], default: Any, dtype: AnyDType) -> None:
        if len(keys) != len(values):
            raise Error("IRC320", f"there are {len(keys)} keys and {len(values)} values")
        self.table = dict(zip(reversed(keys), reversed(values)))
        self.at_nan = next((v for k, v in zip(keys, values) if k != k), default)
        self.default, self.dtype = default, dtype

    def __call__(self, x: Array) -> Array:
        found: Array = np.empty(x.size, self.dtype)
        found[:] = [self.table.get(v, self.default) if v == v else self.at_nan for v in x.reshape(-1).tolist()]
        return found.reshape(x.shape)


@kernel(f"{DOMAIN}::LabelEncoder", since=2)
def label_encoder(node: Node) -> Kernel:
    """Keys, values and default are lists, or from version 4 on tensors."""
    return _Map(_values(node, "keys")[0], *_values(node, "values"))


def _by_numbers(node: Node) -> tuple[Kernel, Kernel]:
    """From names to numbers, and back."""
    names: list[str] = node.attributes["cats_strings" if "Mapper" in node.kind else "classes_strings"]
    numbers: Sequence[int] = node.attributes.get("cats_int64s", range(len(names)))
    maps = (names, numbers, "int64s"), (numbers, names, "strings")
    to_number, to_name = (_Map(a, b, _default(node, form), _DTYPES[form]) for a, b, form in maps)
    return to_number, to_name


@computes(f"{DOMAIN}::LabelEncoder", f"{DOMAIN}::CategoryMapper", maps=_by_numbers)
def map_categories(x: Array, *, maps: tuple[Kernel, Kernel]) -> Array:
    """Names to numbers or numbers to names, as the input is."""
    to_number, to_name = maps
    return to_name(x) if x.dtype.kind in "iu" else to_number(x)


def _labels(*names: str) -> Reader:
    """Reads the first of the attributes ``names`` that has a value."""

    def read(node: Node) -> list[Any]:
        return next((node.attributes[name] for name in names if node.attributes.get(name)), list[Any]())

    return read


@computes(f"{DOMAIN}::ZipMap", labels=_labels("classlabels_int64s", "classlabels_strings"))
def zip_map(x: Array, *, labels: list[Any]) -> list[dict[Any, float]]:
    """Scores [n, classes] as a sequence of maps from class label to score; [classes] as one map."""
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    if rows.ndim != 2 or rows.shape[1] != len(labels):
        raise Error("IRC421", f"scores of shape {list(x.shape)} do not fit {len(labels)} class labels")
    return [dict(zip(labels, row, strict=True)) for row in rows.tolist()]


_CASTS: dict[str, Any] = {"TO_FLOAT": (np.float32, float), "TO_INT64": (np.int64, int), "TO_STRING": (object, str)}


def _room(node: Node) -> int | None:
    """How many places a sparse map has; None if it is dense."""
    size: int = node.attributes.get("max_map", 1)
    if node.attributes.get("map_form", "DENSE") != "SPARSE":
        return None
    if not 0 <= size < 1 << 30:
        raise Error("IRC320", f"max_map is {size}")
    return size


@computes(f"{DOMAIN}::CastMap", cast_to=one_of("cast_to", "TO_FLOAT", _CASTS), size=_room)
def cast_map(pairs: dict[int, Any], *, cast_to: str, size: int | None) -> Array:
    """The values of a map in the order of its keys, [1, n]; sparse: each where its key says, [1, max_map]."""
    dtype, convert = _CASTS[cast_to]
    ordered = sorted(pairs.items())
    try:
        if size is None:
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


@computes(
    f"{DOMAIN}::DictVectorizer",
    vocabulary=lambda node: one_list(node, "string_vocabulary", "int64_vocabulary")[1],
)
def dict_vectorizer(pairs: dict[Any, Any], *, vocabulary: list[Any]) -> Array:
    """The values of a map in a vocabulary's order, [n]; 0, or "", where the map has none."""
    kinds: set[type[Any]] = {type(value) for value in pairs.values()}
    if kinds <= {str} and kinds:
        return np.array([pairs.get(word, "") for word in vocabulary], object)
    dtype = np.int64 if kinds == {int} else np.float64 if kinds == {np.float64} else np.float32
    return np.array([pairs.get(word, 0) for word in vocabulary], dtype)


_NORMS: dict[str, Callable[[Array], Array]] = {
    "MAX": lambda x: x.max(axis=-1, keepdims=True),
    "L1": lambda x: np.absolute(x).sum(axis=-1, keepdims=True),
    "L2": lambda x: np.sqrt(np.square(x).sum(axis=-1, keepdims=True)),
}


@computes(f"{DOMAIN}::Normalizer", norm=one_of("norm", "MAX", _NORMS))
def normalizer(x: Array, *, norm: str) -> Array:
    """Each row divided by its largest element, its sum of sizes or its length; rows where that is 0 stay."""
    if x.ndim not in (1, 2):
        raise Error("IRC421", f"Normalizer needs [n, features] or [features]; the shape is {list(x.shape)}")
    wide = x.astype(np.float64)
    size = _NORMS[norm](wide) if x.size else np.ones(())
    return np.asarray(wide / np.where(size == 0, 1, size)).astype(np.float32)


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


@computes(f"{DOMAIN}::ArrayFeatureExtractor")
def array_feature_extractor(x: Array, columns: Array) -> Array:
    """Columns by number, [..., n]; of a vector, as in ONNX Runtime, a matrix of one row."""
    if not x.ndim:
        raise Error("IRC421", "the input is a scalar; it must have at least one dimension")
    at = columns.reshape(-1)
    if at.size and not 0 <= at.min() <= at.max() < x.shape[-1]:
        raise Error("IRC423", f"columns {at.min()} to {at.max()} are asked for; there are {x.shape[-1]}")
    found = np.take(x, at, axis=-1)
    return found[None] if x.ndim == 1 else found


@computes(f"{DOMAIN}::Binarizer")
def binarizer(x: Array, *, threshold: float = 0.0) -> Array:
    return c_order(np.greater(x, threshold)).astype(x.dtype)


@computes(f"{DOMAIN}::FeatureVectorizer")
def feature_vectorizer(*inputs: Array, inputdimensions: list[int] | None = None) -> Array:
    """Inputs [n, features] side by side as float32, each cut or zero-filled to its number of columns."""
    parts = [x.reshape(-1, 1) if x.ndim < 2 else x for x in inputs]
    wanted = [x.shape[1] for x in parts] if inputdimensions is None else inputdimensions
    rows = {len(x) for x in parts}
    if len(wanted) != len(parts) or len(rows) != 1 or any(x.ndim != 2 for x in parts):
        raise Error("IRC421", f"inputs of shapes {shapes_of(*inputs)} do not make columns {wanted}")
    (count,) = rows
    check_size([count, *wanted], np.dtype(np.uint8))
    found: Array = np.zeros(check_size((count, sum(wanted)), np.dtype(np.float32)), np.float32)
    ends = np.cumsum(wanted).tolist()
    for x, width, end in zip(parts, wanted, ends, strict=True):
        used = min(width, x.shape[1])
        found[:, end - width : end - width + used] = x[:, :used]
    return found


def _imputed(node: Node) -> tuple[Array, Any]:
    """The values that are put in, and the one that they replace."""
    name, values = one_list(node, "imputed_value_floats", "imputed_value_int64s")
    replaced = "replaced_value_float" if name.endswith("floats") else "replaced_value_int64"
    return np.array(values), node.attributes.get(replaced, 0)


@computes(f"{DOMAIN}::Imputer", imputed=_imputed)
def imputer(x: Array, *, imputed: tuple[Array, Any]) -> Array:
    """Values that mean "missing" replaced, by one value or one for each feature."""
    values, missing = imputed
    as_rows(x)
    is_missing = np.isnan(x) if missing != missing else x == missing
    return c_order(np.where(is_missing, _per_feature(values, "imputed_value", x).astype(x.dtype), x))


def _categories(node: Node) -> tuple[dict[Any, int], int]:
    """The number of each category, and how many there are."""
    categories = _labels("cats_int64s", "cats_strings")(node)
    return {category: i for i, category in enumerate(categories)}, len(categories)


@computes(f"{DOMAIN}::OneHotEncoder", categories=_categories)
def one_hot_encoder(x: Array, *, categories: tuple[dict[Any, int], int], zeros: bool = True) -> Array:
    """Of x [...] the vectors [..., categories]; of no category one of zeros, or an error."""
    place, count = categories
    keys: list[Any] = (x if x.dtype.kind in "OU" else x.astype(np.int64)).reshape(-1).tolist()
    at = np.array([place.get(key, -1) for key in keys], np.int64)
    if not zeros and (at < 0).any():
        raise Error("IRC424", f"{keys[int(np.argmin(at))]!r} is none of the categories")
    found: Array = np.zeros(check_size((len(keys), count), np.dtype(np.float32)), np.float32)
    found[np.flatnonzero(at >= 0), at[at >= 0]] = 1
    return found.reshape(*x.shape, count)


@kernel(f"{DOMAIN}::Scaler")
def scaler(node: Node) -> Kernel:
    """``(x - offset) * scale``, with one value of each or one for each feature, as float32."""
    defaults = {"offset": [0.0], "scale": [1.0]}
    given = {name: np.array(node.attributes.get(name, values), np.float32) for name, values in defaults.items()}
    latest: tuple[tuple[int, ...], Array, Array] | None = None

    def run(x: Array) -> Array:
        nonlocal latest
        known = latest
        if known is None or known[0] != x.shape:
            as_rows(x)
            shift, factor = (_per_feature(values, name, x).astype(np.float64) for name, values in given.items())
            known = latest = x.shape, spread_out(shift, x.shape), spread_out(factor, x.shape)
        moved = x.astype(np.float64, order="C")
        moved -= known[1]
        moved *= known[2]
        return moved.astype(np.float32)

    return run


# -- scores --------------------------------------------------------------------


Transform = Callable[[Array], Array]


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
    "NONE": lambda x: x,
    "SOFTMAX": lambda x: softmax(x, -1),
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}
"""In the order of TreeEnsemble's numbers for them."""


def post_transform(node: Node) -> str:
    """The node's ``post_transform`` by name; Error for an unknown name."""
    return choice(node, "post_transform", "NONE", tuple(TRANSFORMS))


def choice(node: Node, attribute: str, default: str, choices: Sequence[str]) -> str:
    """Which of ``choices`` an attribute says, by name or by number; Error for an unknown one."""
    given: Any = node.attributes.get(attribute, default)
    name: Any = choices[given] if isinstance(given, int) and 0 <= given < len(choices) else given
    if name not in choices:
        raise Error("IRC320", f"{attribute} is {given!r}; it must be one of {', '.join(choices)}")
    return name


def class_labels(node: Node, ints: str) -> Array:
    """The labels of classes, [classes]: the attribute ``ints``, or ``classlabels_strings``."""
    name, labels = one_list(node, ints, "classlabels_strings")
    return np.array(labels, np.int64 if name == ints else object)


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
            raise Error("IRC421", f"an input {list(x.shape)} does not fit {len(weights)} coefficients a target")
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
            return labels[scores.argmax(1)], transform(scores).astype(np.float32, order="C")
        if name == "PROBIT":
            raise Error("IRC320", "the scores of two classes by one row of coefficients have no PROBIT")
        score = scores[:, 0]
        best = labels[(score > 0).astype(np.int64)]
        pair = (logistic(-score), logistic(score)) if name == "LOGISTIC" else (1 - score, score)
        return best, np.stack(pair, axis=1).astype(np.float32)

    return run


KERNELS: dict[str, Callable[[Array, Array, float, float, float], Array]] = {
    "LINEAR": lambda x, v, gamma, shift, degree: x @ v.T,
    "POLY": lambda x, v, gamma, shift, degree: power(gamma * (x @ v.T) + shift, np.array(degree, x.dtype)),
    "SIGMOID": lambda x, v, gamma, shift, degree: np.tanh(gamma * (x @ v.T) + shift),
    "RBF": lambda x, v, gamma, shift, degree: _of_distances(x, v, gamma),
}
"""Of x [n, features] and v [vectors, features] the similarities, [n, vectors]."""


def _of_distances(x: Array, v: Array, gamma: float) -> Array:
    """exp(-gamma |x - v|²)."""
    made = CURRENT.scope.loops.fused(_RADIAL, (x[:, None], v, np.array(-gamma)))
    return np.exp(-gamma * _squared_distances(x, v)) if made is None else made


_RADIAL = """
graph(%x : Tensor, %v : Tensor, %gamma : Tensor):
  %last : Long(1) = prim::Constant[value=tensor<Long(1)>([2])]()
  %difference : Tensor = onnx::Sub(%x, %v)
  %distance : Tensor = onnx::ReduceSumSquare[keepdims=0](%difference, %last)
  %exponent : Tensor = onnx::Mul(%distance, %gamma)
  %similarity : Tensor = onnx::Exp(%exponent)
  return (%similarity)
"""


def _squared_distances(x: Array, v: Array) -> Array:
    found = np.zeros((len(x), len(v)))
    for a, b in zip(x.T, v.T, strict=True):  # by feature: differences of large numbers are exact, their squares are not
        found += np.square(a[:, None] - b)
    return found


Similarity = Callable[[Array], Array]


def _similarity(node: Node, basis: Array, kind: str) -> Similarity:
    """Of x [n, features] the similarities to each vector in ``basis``, [n, vectors]."""
    if kind not in KERNELS:
        raise Error("IRC320", f"kernel_type is {kind!r}; it must be one of {', '.join(KERNELS)}")
    given: list[float] = node.attributes.get("kernel_params") or [0.0, 0.0, 0.0]
    if len(given) != 3:
        raise Error("IRC320", f"kernel_params has {len(given)} values; it must have 3: gamma, coef0 and degree")
    similar, (gamma, shift, degree) = KERNELS[kind], given
    latest: tuple[int, ...] = ()

    def run(x: Array) -> Array:
        nonlocal latest
        if x.shape != latest or CURRENT.scope.guard is not None:
            rows = as_rows(x)
            if rows.shape[1] != basis.shape[1]:
                raise Error("IRC421", f"the input has shape {list(x.shape)}; it must be [n, {basis.shape[1]}]")
            check_size((len(rows), len(basis)), basis.dtype)
            check_work(rows.size * len(basis))
            latest = x.shape
        return similar(as_rows(x).astype(np.float64), basis, gamma, shift, degree)

    return run


@kernel("ai.onnx.ml::SVMRegressor")
def svm_regressor(node: Node) -> Kernel:
    """The weighted similarities of x [n, features] to support vectors, plus rho, [n, 1]; one class: ±1."""
    coefficients, rho, vectors = (floats(node, name) for name in ("coefficients", "rho", "support_vectors"))
    count: int = node.attributes.get("n_supports", 0)
    if rho.size != 1 or count < 0 or (count and (coefficients.size != count or vectors.size % count)):
        given = f"{coefficients.size} coefficients, {vectors.size} numbers in vectors and {rho.size} of rho"
        raise Error("IRC320", f"{given} do not fit {count} support vectors")
    transform = TRANSFORMS[post_transform(node)]
    one_class = bool(node.attributes.get("one_class", 0))
    basis = vectors.reshape(count, -1) if count else coefficients.reshape(1, -1)
    factors = coefficients if count else np.ones(1)
    similar = _similarity(node, basis, node.attributes.get("kernel_type", "LINEAR") if count else "LINEAR")

    def run(x: Array) -> Array:
        score = (similar(x) @ factors + rho)[:, None]
        found = np.where(score > 0, 1, -1) if one_class else transform(score)
        return found.astype(np.float32)

    return run


@kernel("ai.onnx.ml::SVMClassifier")
def svm_classifier(node: Node) -> Kernel:
    """Of x [n, features] the best class of each row, [n], and scores, float32.

    The scores are of pairs of classes, [n, pairs] (of two classes [n, 2]); with
    ``prob_a`` and ``prob_b`` the classes' probabilities, [n, classes], as they
    are without support vectors.
    """
    sizes: list[int] = node.attributes.get("vectors_per_class") or []
    if min(sizes, default=0) < 0:
        raise Error("IRC320", f"vectors_per_class is {sizes}; a class cannot have fewer than no vectors")
    return _by_vectors(node, sizes) if sum(sizes) else _by_weights(node)


def _by_weights(node: Node) -> Kernel:
    labels, transform = class_labels(node, "classlabels_ints"), TRANSFORMS[post_transform(node)]
    coefficients, rho, classes = floats(node, "coefficients"), floats(node, "rho"), len(labels)
    if not coefficients.size or coefficients.size % classes or not rho.size:
        raise Error("IRC320", f"{coefficients.size} coefficients and {rho.size} of rho do not fit {classes} classes")
    similar = _similarity(node, coefficients.reshape(classes, -1), "LINEAR")
    # Of two classes the second is the one that wins by a threshold, unless there are probabilities.
    least = 0.5 if (coefficients >= 0).all() else np.nextafter(0, 1)
    by_threshold = classes == 2 and not floats(node, "prob_a").size

    def run(x: Array) -> tuple[Array, Array]:
        scores = (similar(x) + rho[0]).astype(np.float32)
        best = scores.argmax(1)
        if by_threshold:
            best[scores.max(axis=1) >= least] = 1
        return labels[best], transform(scores).astype(np.float32, order="C")

    return run


def _by_vectors(node: Node, sizes: list[int]) -> Kernel:
    labels, name = class_labels(node, "classlabels_ints"), post_transform(node)
    classes, count = len(labels), sum(sizes)
    coefficients, rho, vectors = (floats(node, name) for name in ("coefficients", "rho", "support_vectors"))
    slopes, shifts = floats(node, "prob_a").astype(np.float32), floats(node, "prob_b").astype(np.float32)
    pairs = classes * (classes - 1) // 2
    wanted = {"vectors_per_class": classes, "coefficients": (classes - 1) * count, "rho": pairs}
    wanted |= {"prob_a": pairs, "prob_b": pairs} if slopes.size or shifts.size else {}
    given = {key: len(node.attributes.get(key) or []) for key in wanted}
    fit = given["vectors_per_class"] == classes and all(given[key] >= size for key, size in wanted.items())
    if classes < 2 or not fit or not vectors.size or vectors.size % count:
        raise Error("IRC320", f"{given} do not fit {classes} classes with {count} support vectors: {wanted}")
    if pairs == 1 and not slopes.size and name == "PROBIT":
        raise Error("IRC320", "the scores of two classes by support vectors have no PROBIT")
    similar = _similarity(node, vectors.reshape(count, -1), node.attributes.get("kernel_type", "LINEAR"))
    # A vector has a coefficient for each class but its own: of class i against j, greater, in row j - 1; of j in row i.
    table = coefficients[: (classes - 1) * count].reshape(classes - 1, count)
    ends = np.cumsum([0, *sizes], dtype=np.int64)
    machine = Machine(table, ends, rho[:pairs], slopes[:pairs], shifts[:pairs])
    latest: tuple[InnerLoops | None, int, Decide | None] = None, 0, None

    def run(x: Array) -> tuple[Array, Array]:
        nonlocal latest
        similarities = similar(x)
        check_work(similarities.size * classes)
        known, loops, rows = latest, CURRENT.scope.loops, len(similarities)
        if known[0] is not loops or known[1] != rows:
            known = latest = loops, rows, loops.decider(rows, machine)
        made = None if known[2] is None else known[2](similarities)
        best, scores, chances = _decided(similarities, machine) if made is None else made
        if chances is None and pairs == 1:
            both = np.hstack([-scores if name in ("NONE", "LOGISTIC") else 1 - scores, scores])
            return labels[best], TRANSFORMS[name](both) if name == "LOGISTIC" else both
        found = scores if chances is None else chances
        return labels[best], TRANSFORMS[name](found).astype(np.float32, order="C", copy=False)

    return run


class Machine(NamedTuple):
    """What decides between classes, of which each pair has a score.

    Attributes:
        table: factors of similarities (classes - 1, vectors), float64.
        ends: the number of the first vector of each class, and of the vectors (classes + 1), int64.
        rho: what is added to scores (pairs), float64.
        slopes: of scores, for probabilities (pairs), float32; empty: there are none.
        shifts: likewise.
    """

    table: Array
    ends: Array
    rho: Array
    slopes: Array
    shifts: Array


Decided = tuple[Array, Array, "Array | None"]
"""The number of the best class (N), int64, scores (N, pairs), and probabilities, if there are any (N, classes)."""

Decide = Callable[[Array], "Decided | None"]
"""What a `Machine` makes of similarities (N, vectors), float64; None if it declines."""


def _decided(similarities: Array, machine: Machine) -> Decided:
    """What `Machine` makes of ``similarities`` (N, vectors)."""
    table, ends, rho, slopes, shifts = machine
    n, classes = len(similarities), len(ends) - 1
    first, second = np.triu_indices(classes, 1)
    sums = np.empty(check_size((n, classes, classes - 1), similarities.dtype))
    for i, (begin, end) in enumerate(pairwise(ends.tolist())):
        np.matmul(similarities[:, begin:end], table[:, begin:end].T, out=sums[:, i])
    scores = (sums[:, first, second - 1] + sums[:, second, first] + rho).astype(np.float32)
    votes = np.zeros((n, classes), np.int64)
    np.add.at(votes, (np.arange(n)[:, None], np.where(scores > 0, first, second)), 1)
    chances = None
    if slopes.size:
        less = 1 - TRANSFORMS["LOGISTIC"](scores * slopes + shifts)
        chances = _coupled(np.clip(less, 1e-7, 1 - 1e-7, dtype=np.float32), first, second, classes)
    return votes.argmax(1), scores, chances


MOST_TURNS = 100
"""Passes over the classes, until probabilities are taken as they are."""


def _coupled(less: Array, first: Array, second: Array, classes: int) -> Array:
    """Probabilities of classes, [n, classes], from pairwise ones, [n, pairs].

    The second method of Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise coupling"
    (2004): the minimum of p Q p with a sum of 1, class by class until the equations hold up to 0.005 / classes.
    """
    n = len(less)
    beats = np.zeros(check_size((n, classes, classes), less.dtype), less.dtype)
    beats[:, first, second], beats[:, second, first] = less, 1 - less
    q = -np.swapaxes(beats, 1, 2) * beats
    diagonal = np.square(beats).sum(axis=1)
    q[:, range(classes), range(classes)] = diagonal
    found = np.full((n, classes), 1 / classes, less.dtype)
    going = np.arange(n)
    for _ in range(MOST_TURNS):
        pace()
        p, matrix = found[going], q[going]
        product = np.matmul(matrix, p[:, :, None])[:, :, 0]
        total = (p * product).sum(axis=1)
        open_ = np.abs(product - total[:, None]).max(axis=1) >= 0.005 / classes
        going, p, product, total, matrix = going[open_], p[open_], product[open_], total[open_], matrix[open_]
        if not going.size:
            break
        for i in range(classes):
            own = matrix[:, i, i]
            step = (total - product[:, i]) / own
            p[:, i] += step
            total = (total + step * (step * own + 2 * product[:, i])) / (1 + step) / (1 + step)
            product = (product + step[:, None] * matrix[:, i]) / (1 + step[:, None])
            p /= 1 + step[:, None]
        found[going] = p
    return found


Step = Callable[..., tuple[Array, ...]]
"""From the attributes, the learning rate, the number of steps made, and tensor, slope and states: the new tensor and
states."""


_NUMBERS = {"decay_factor": 0.0, "epsilon": 1e-6, "norm_coefficient": 0.0, "norm_coefficient_post": 0.0}
_OF_ADAM = {"alpha": 0.9, "beta": 0.999}


def _numbers(node: Node) -> SimpleNamespace:
    """Attributes, in a type whose powers and quotients overflow to infinity."""
    defaults = _NUMBERS | (_OF_ADAM if node.kind.endswith("Adam") else dict.fromkeys(_OF_ADAM, 0.0))
    return SimpleNamespace(**{name: np.float64(node.attributes.get(name, value)) for name, value in defaults.items()})


def _steps(rate: Array, count: Array, *inputs: Array, step: Step, states: int, given: Any) -> Any:
    """New tensors, then first states...: from inputs R, T, tensors, gradients, first states..."""
    kinds = 2 + states
    tensors, left = divmod(len(inputs), kinds)
    if left or not tensors:
        raise Error("IRC421", f"{len(inputs)} tensors, gradients and states are not {kinds} for each tensor")
    r, t = np.float64(scalar(rate, "the learning rate")), int(scalar(count, "the number of steps"))
    found: list[tuple[Array, ...]] = []
    for i in range(tensors):
        x, gradient, *own = group = list(inputs[i::tensors])
        if len({x.shape for x in group}) != 1:
            raise Error("IRC421", f"a tensor, its gradient and states have different shapes: {shapes_of(*group)}")
        made = step(given, r, t, x, given.norm_coefficient * x + gradient, *own)
        found.append(tuple(c_order(y.astype(x.dtype)) for y, x in zip(made, [x, *own])))
    return tuple(group[k] for k in range(kinds - 1) for group in found)


def _adagrad(given: Any, rate: np.float64, count: int, x: Array, slope: Array, squares: Array) -> tuple[Array, ...]:
    total = squares + slope * slope
    return x - rate / (1 + count * given.decay_factor) * slope / (np.sqrt(total) + given.epsilon), total


def _adam(
    given: Any, rate: np.float64, count: int, x: Array, slope: Array, mean: Array, square: Array
) -> tuple[Array, ...]:
    mean = given.alpha * mean + (1 - given.alpha) * slope
    square = given.beta * square + (1 - given.beta) * slope * slope
    if count > 0:
        rate = rate * np.sqrt(1 - given.beta**count) / (1 - given.alpha**count)
    moved = x - rate * mean / (np.sqrt(square) + given.epsilon)
    return (1 - given.norm_coefficient_post) * moved, mean, square


def _momentum(given: Any, rate: np.float64, count: int, x: Array, slope: Array, velocity: Array) -> tuple[Array, ...]:
    velocity = given.alpha * velocity + (given.beta if count > 0 else 1) * slope
    return x - rate * velocity, velocity


def _nesterov(given: Any, rate: np.float64, count: int, x: Array, slope: Array, velocity: Array) -> tuple[Array, ...]:
    velocity = given.alpha * velocity + (given.beta if count > 0 else 1) * slope
    return x - rate * (slope + given.alpha * velocity), velocity


_MODES: dict[str, Step] = {"standard": _momentum, "nesterov": _nesterov}


_STEPS: tuple[tuple[str, int, Reader], ...] = (
    ("Adagrad", 1, always(_adagrad)),
    ("Adam", 2, always(_adam)),
    ("Momentum", 1, lambda node: _MODES[one_of("mode", None, _MODES)(node)]),
)
for _name, _states, _step in _STEPS:
    computes(f"ai.onnx.preview.training::{_name}", step=_step, states=always(_states), given=_numbers)(_steps)
