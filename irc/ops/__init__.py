"""Records of operators: one each, by family, with all that irc knows of it (today: what pointwise operators compute).

Families are read when a record is first asked for. This layer knows nothing of graphs, passes and kernels; those ask
it.
"""

from __future__ import annotations

from irc.ops.operator import Choice, Family, Operator
from irc.ops.registry import find, names, records, versions

__all__ = ["Choice", "Family", "Operator", "find", "names", "records", "versions"]
