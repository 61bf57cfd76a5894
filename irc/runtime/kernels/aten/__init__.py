"""Torch's operators in NumPy, with torch's promotion, memory layouts, views and in-place writes.

One module a family; importing this package registers them all.
"""

from __future__ import annotations

from importlib import import_module

from irc.ops import records
from irc.runtime.kernels.aten.element_types import overwrite
from irc.runtime.kernels.aten.registering import complete, copied, named

FAMILIES = (
    "arithmetic attention containers convolution copies creation indexing linear_algebra losses "
    "normalization python recurrent reductions sampling signals sorting unary views"
).split()

for _module in [import_module(f"{__name__}.{family}") for family in FAMILIES]:  # all, before functions get names
    named(_module)
_OTHERS_IN_PLACE = "conj_physical dropout feature_dropout alpha_dropout feature_alpha_dropout".split()
complete(
    (*(each.name for each in records("aten") if each.in_place is not None), *_OTHERS_IN_PLACE),
    "_",
    overwrite,
)
complete((each.name for each in records("aten") if each.copied), "_copy", copied)
