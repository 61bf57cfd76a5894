"""Kinds of nodes that several layers know by name."""

from __future__ import annotations

CONSTANT = "prim::Constant"
"""Gives its attribute ``value``; for functions and objects, what its other attributes say."""

IF = "prim::If"
"""Runs one of its two blocks."""

IDENTITY = "onnx::Identity"
"""Gives its input. Passes insert it where an output has to keep its name, whatever its type is."""

RETURN = "prim::Return"
"""Ends every block: its inputs are what that returns."""

GROUP = "prim::FusionGroup"
"""Runs its attribute ``Subgraph``, whose nodes were fused."""

DIFFERENTIABLE = "prim::DifferentiableGraph"
"""A group that may return less than its subgraph does: the rest is for a backward pass."""

SUBGRAPHS = frozenset(
    [
        GROUP,
        DIFFERENTIABLE,
        "prim::CudaFusionGroup",
        "prim::FallbackGraph",
        "prim::FunctionalGraph",
        "prim::StaticSubgraph",
        "prim::TensorExprGroup",
    ]
)
"""Run the graph in their attribute ``Subgraph`` once, as it stands, on their inputs."""

CALL = "prim::CallFunction"
"""Calls another graph of the module, which its first input names."""

LAYER_NORM, RMS_NORM = "onnx::LayerNormalization", "onnx::RMSNormalization"
"""What normalisations are that exporters spell out."""

GELU, SWISH = "onnx::Gelu", "onnx::Swish"
"""What activations are that exporters spell out."""

ROTATE_HALF = "irc::rotate_half"
"""What exporters of rotary positions spell out."""

MASKED_SOFTMAX = "irc::masked_softmax"
"""What exporters of attention with masks spell out."""

ATTENTION = "irc::attention"
"""Scaled dot-product attention: what exporters spell out, and what operators called attention compute."""

MATMUL = "onnx::MatMul"
"""A product of matrices, or of a batch of them."""

PRIM_LOOP, ONNX_LOOP, SCAN = "prim::Loop", "onnx::Loop", "onnx::Scan"

LOOPS = frozenset([PRIM_LOOP, ONNX_LOOP, SCAN])
"""Their block runs any number of times; what it carries from one to the next: `irc.ir.region_flow`."""

CONTROL_FLOW = LOOPS | {IF, CALL}
"""What they run is not one kernel."""

DOMAINS = {"onnx": ""} | {
    name: name for name in ("ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", "ai.onnx.training")
}
"""The IR's namespaces of the ONNX standard's operators -> ONNX's name of each.

Operators of these namespaces write nothing and return fresh memory unless a row says more. Of others that look like
them (``ai.onnx.contrib``) nothing is known.
"""


# Other names of torch's operators.
#
# PyTorch replaces them in code that it compiles and in what it traces, but neither in modules that a trace calls nor
# in text. Nodes never have them, so that everything that depends on kinds knows one name.


_OTHER_NAMES = {
    "abs": "absolute",
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "cat": "concat concatenate",
    "clamp": "clip",
    "digamma": "special_digamma special_psi",
    "div": "divide true_divide",
    "erf": "special_erf",
    "erfc": "special_erfc",
    "erfinv": "special_erfinv",
    "exp2": "special_exp2",
    "expm1": "special_expm1",
    "ge": "greater_equal",
    "gt": "greater",
    "i0": "special_i0",
    "igamma": "special_gammainc",
    "igammac": "special_gammaincc",
    "le": "less_equal",
    "lgamma": "special_gammaln",
    "linalg_det": "det",
    "linalg_householder_product": "orgqr",
    "linalg_inv": "inverse",
    "linalg_matrix_exp": "matrix_exp",
    "linalg_matrix_power": "matrix_power",
    "log1p": "special_log1p",
    "log_softmax": "special_log_softmax",
    "logit": "special_logit",
    "logsumexp": "special_logsumexp",
    "lt": "less",
    "mH": "adjoint",
    "matmul": "linalg_matmul",
    "movedim": "moveaxis",
    "mul": "multiply",
    "mvlgamma": "special_multigammaln",
    "ne": "not_equal",
    "neg": "negative",
    "outer": "ger",
    "polygamma": "special_polygamma",
    "round": "special_round",
    "sigmoid": "special_expit",
    "sinc": "special_sinc",
    "softmax": "special_softmax",
    "sub": "subtract",
    "transpose": "swapaxes swapdims",
    "trunc": "fix",
    "vstack": "row_stack",
    "xlogy": "special_xlogy",
}
NAMES = {
    f"aten::{other}{end}": f"aten::{name}{end}"
    for name, others in _OTHER_NAMES.items()
    for other in others.split()
    for end in ("", "_")
}
"""Kind -> the kind that PyTorch compiles it to."""
