"""What ONNX Runtime computes, for tests to compare with."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from irc.tools.check.peers import onnxruntime_session, run_session


def run_onnxruntime(
    model: onnx.ModelProto | str | Path,
    feeds: Mapping[str, Any],
    names: Sequence[str] | None = None,
    optimised: bool = True,
) -> list[Any]:
    """The outputs called ``names``, or all, of a model or a file. Raises whatever ONNX Runtime does."""
    return run_session(onnxruntime_session(model, optimised=optimised, threads=1), feeds, names)
