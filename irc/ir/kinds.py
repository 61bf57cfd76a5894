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

SUBGRAPHS = frozenset([GROUP, DIFFERENTIABLE]) | {
    f"prim::{name}"
    for name in ("CudaFusionGroup", "FallbackGraph", "FunctionalGraph", "StaticSubgraph", "TensorExprGroup")
}
"""Run the graph in their attribute ``Subgraph`` once, as it stands, on their inputs."""

CALL = "prim::CallFunction"
"""Calls another graph of the module, which its first input names."""

LAYER_NORM, RMS_NORM = "onnx::LayerNormalization", "onnx::RMSNormalization"
"""Normalisations that exporters write as several operators."""

GELU, SWISH = "onnx::Gelu", "onnx::Swish"
"""Activations that exporters write as several operators."""

ROTATE_HALF = "irc::rotate_half"
"""Rotary positions, which exporters write as several operators."""

MASKED_SOFTMAX = "irc::masked_softmax"
"""Masked softmax, which exporters of attention write as several operators."""

ATTENTION = "irc::attention"
"""Scaled dot-product attention, also where exporters write it as several operators."""

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


_SPECIAL = "digamma erf erfc erfinv exp2 expm1 i0 log1p log_softmax logit logsumexp polygamma round sinc softmax xlogy"
"""Operators that are called so with ``special_`` before it, too."""

_OTHER_NAMES = """
    absolute=abs arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh arctan=atan arctan2=atan2 arctanh=atanh
    concat=cat concatenate=cat clip=clamp special_psi=digamma divide=div true_divide=div greater_equal=ge greater=gt
    special_gammainc=igamma special_gammaincc=igammac less_equal=le special_gammaln=lgamma det=linalg_det
    orgqr=linalg_householder_product inverse=linalg_inv matrix_exp=linalg_matrix_exp
    matrix_power=linalg_matrix_power less=lt adjoint=mH linalg_matmul=matmul moveaxis=movedim multiply=mul
    special_multigammaln=mvlgamma not_equal=ne negative=neg ger=outer special_expit=sigmoid subtract=sub
    swapaxes=transpose swapdims=transpose fix=trunc row_stack=vstack
    """
NAMES = {
    f"aten::{other}{end}": f"aten::{name}{end}"
    for other, name in [
        *(pair.split("=") for pair in _OTHER_NAMES.split()),
        *((f"special_{name}", name) for name in _SPECIAL.split()),
    ]
    for end in ("", "_")
}
"""Kind -> the kind that PyTorch compiles it to."""
