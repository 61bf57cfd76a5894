"""Kinds of nodes that several layers know by name."""

from __future__ import annotations

GROUP = "prim::FusionGroup"
"""Runs its attribute ``Subgraph``, whose nodes were fused."""

CALL = "prim::CallFunction"
"""Calls another graph of the module, which its first input names."""

LOOPS = frozenset(["prim::Loop", "onnx::Loop", "onnx::Scan"])
"""Their block runs any number of times."""

CONTROL_FLOW = LOOPS | {"prim::If", CALL}
"""What they run is not one kernel."""
