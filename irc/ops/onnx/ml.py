"""Text; classic machine learning: features, linear models, SVMs, trees; losses and optimisers."""

from __future__ import annotations

from irc.ir.types import INT, STR, DictType, DType, ListType, TensorType, Type
from irc.ops import Family, checks, sizes
from irc.ops.inference import NodeTypes

FAMILY = Family("ai.onnx.ml")
FAMILY.each("CastMap DictVectorizer ZipMap", value_operands=None, kernel="ml")
FAMILY.each("CategoryMapper LabelEncoder Normalizer", value_operands=(), kernel="ml")
FAMILY.each(
    "ArrayFeatureExtractor Binarizer FeatureVectorizer Imputer OneHotEncoder Scaler", value_operands=(), kernel="ml"
)
FAMILY.each("LinearClassifier LinearRegressor", value_operands=(), kernel="ml")
FAMILY.each("SVMClassifier SVMRegressor", value_operands=(), kernel="ml")
FAMILY.each("TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor", value_operands=(), kernel="ml_trees")
FAMILY.each("onnx::TfIdfVectorizer", attributes={"mode": ("TF", "IDF", "TFIDF")}, kernel="strings")
FAMILY.each("onnx::RegexFullMatch onnx::StringConcat onnx::StringNormalizer onnx::StringSplit", kernel="strings")
FAMILY.each("onnx::StringConcat", size=sizes.joined_text)
FAMILY.each(
    "onnx::StringNormalizer", value_operands=None, attributes={"case_change_action": ("LOWER", "UPPER", "NONE")}
)


FAMILY.shape("onnx::StringNormalizer")(lambda c: TensorType(DType.STRING))


@FAMILY.shape("ZipMap")
def zip_map(c: NodeTypes) -> Type:
    return ListType(DictType(INT if c.attr("classlabels_int64s") else STR, TensorType(DType.FLOAT)))


@FAMILY.requires("LabelEncoder")
def check_label_encoder(c: NodeTypes) -> None:
    for what in ("keys", "values") if c.version > 1 else ():
        names = [f"{what}_{kind}" for kind in ("tensor", "strings", "int64s", "floats")]
        given = [name for name in names if c.attr(name) is not None]
        if len(given) != 1:
            c.fail(f"exactly one of {', '.join(names)} must be given, not {' and '.join(given) or 'none'}")


# -- training --------------------------------------------------------------------

FAMILY.each(
    "onnx::NegativeLogLikelihoodLoss onnx::SoftmaxCrossEntropyLoss",
    expanded=True,
    attributes={"reduction": ("none", "sum", "mean")},
)
for _name in ("Adagrad", "Adam", "Momentum"):
    FAMILY.each(f"ai.onnx.preview.training::{_name}", kernel="ml")


@FAMILY.requires("onnx::NegativeLogLikelihoodLoss", "onnx::SoftmaxCrossEntropyLoss")
def check_classes(c: NodeTypes) -> None:
    """Losses of classes: (N, C, d...) scores, (N, d...) classes, (C) weights."""
    x, target = c.shape(0), c.shape(1)
    if x is None or len(x) < 2:
        return
    checks.rank("the weights", 2, 1)(c)
    checks.size(c, "the weights", 2, x[1], f"{x[1]} classes")
    if target is None:
        return
    if len(target) != len(x) - 1:
        c.fail(f"the classes must have {len(x) - 1} dimensions, not {len(target)}")
    for a, b in zip((x[0], *x[2:]), target):
        c.same_dim([a, b], "sizes of scores and classes")
