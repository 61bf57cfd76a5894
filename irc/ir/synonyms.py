"""Other names of torch's operators.

PyTorch replaces them in code that it compiles and in what it traces, but neither in modules that a trace calls nor
in text. Nodes never have them, so that everything that depends on kinds knows one name.
"""

from __future__ import annotations

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
