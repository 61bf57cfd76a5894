"""What other runtimes say when they cannot run a model, in one line."""

from __future__ import annotations

import re

MOST = 300
"""Characters of a reason; of what is longer, the middle is left out."""

_NOISE = re.compile(
    r"""^\[ONNXRuntimeError\]\ :\ \d+\ :\ \w+\ :\             # a number and the name of it
    | (?:\b[A-Z]:)?[^\s:]+\.(?:cc|h):\d+\                     # where in its source
      [^()]*\((?:[^()]|\([^()]*\))*\)(?:[^()\s]*\([^()]*\)>?)*  # the signature of the function there
      (?:\ const)?(?:\ \[with\ [^\]]*\])?\ """,
    re.VERBOSE,
)


def reason(error: Exception) -> str:
    """The first line of what ``error`` says, without the places in its makers' source that ONNX Runtime begins with."""
    line = (str(error).splitlines() or [type(error).__name__])[0]
    said = _NOISE.sub("", line).strip() or line
    return said if len(said) <= MOST else f"{said[: MOST // 3]}…{said[-(2 * MOST // 3 - 1) :]}"
