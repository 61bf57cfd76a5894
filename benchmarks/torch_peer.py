"""PyTorch's alias analysis and fuser, on the IR text that irc reads too.

Its tensor-expression fuser wants tensors whose shape, strides and device are
known (`families.TYPED`), and to be allowed on the CPU. The pass is called on
the parsed graph, as PyTorch's own tests do; it builds an AliasDb itself, as
irc's does. Import this only if torch is installed.
"""

from __future__ import annotations

from typing import Any

import torch

torch._C._jit_set_texpr_fuser_enabled(True)
torch._C._jit_override_can_fuse_on_cpu(True)


def parse(text: str) -> Any:
    """A ``torch._C.Graph``."""
    return torch._C.parse_ir(text)


def alias(graph: Any) -> Any:
    """Its AliasDb."""
    return graph.alias_db()


def fuse(graph: Any) -> Any:
    """Fuse pointwise operators in place."""
    torch._C._jit_pass_fuse_tensorexprs(graph)
    return graph
