"""Models as files: whole or not at all, large weights in a file beside them."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from irc.errors import Error
from irc.frontend.onnx_export.model import write_model
from irc.frontend.onnx_export.weights import InFile
from irc.frontend.onnx_export.written import Written, written
from irc.support.files import real_path, replacing, spare_sources

if TYPE_CHECKING:
    from irc.ir import Module


def save_model(module: Module, path: str | os.PathLike[str], external_threshold: int | None = None) -> Written:
    """Write ``module``, which is not changed, to ``path`` as an ONNX model.

    Weights that go into a file of their own go into ``<path>.data``. Both files appear when they are complete, the
    model last; if anything fails, existing files stay.

    Args:
        module: any module whose operators are those of ONNX.
        path: where to.
        external_threshold: weights of that many bytes or more go into the other file, but for strings and short vectors
            of integers; None: all from 1 KB on, but only if the model would be too large for one file.

    Returns:
        What the files hold, and how many bytes they have together.

    Raises:
        irc.Error: IRC350, IRC351; IRC501 if a file cannot be written; IRC503 if it is one of those that the module was
            read from, unless its model is replaced too; IRC352 if the model without its weights, or with those below
            the threshold, is too large for a message.
    """
    from google.protobuf.message import EncodeError

    where = os.fspath(path)
    target = real_path(where)
    beside = f"{target}.data"
    weights = InFile(os.path.basename(beside), external_threshold)
    proto = write_model(module, weights)
    try:
        weights.place(proto.ByteSize())
        message = proto.SerializeToString()
    except (EncodeError, ValueError) as error:  # protobuf's limit, in one implementation and in the other
        raise Error("IRC352", f"the model is too large for a message: {error}", where) from None
    if target not in module.sources[:1]:  # a model that is replaced itself needs its data no longer
        spare_sources(module.sources, [where] if weights.is_empty else [where, beside])
    with replacing(where) as file:
        free = shutil.disk_usage(os.path.dirname(target)).free
        if weights.bytes > free:
            raise Error("IRC501", f"the weights take {weights.bytes:,} bytes, and only {free:,} are free", where)
        file.write(message)
        file.flush()  # a full disk shows now: once the other file is in its place, only a renaming is left
        if not weights.is_empty:
            with replacing(beside) as data:
                weights.write(data)
    return written(proto, len(message) + weights.bytes)
