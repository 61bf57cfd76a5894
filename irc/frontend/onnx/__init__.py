"""ONNX models to modules.

Errors are ``irc.Error`` with one of these codes:

=======  ===================================================================
IRC120   the file cannot be read
IRC121   it is not an ONNX model, or a truncated one
IRC122   IR version or operator sets missing or unknown
IRC123   operators that are not supported, all in one message: those of domains
         that are not imported and, if unknown ones are refused, these
IRC124   names missing or not unique (not in SSA form)
IRC125   a value that is used but never defined
IRC126   a cycle
IRC127   an attribute that is wrong, missing or unknown
IRC128   a wrong number of inputs or outputs
IRC129   a malformed tensor
IRC130   external data missing, too short or outside the model's folder
IRC131   a malformed type
IRC132   local functions: recursion, duplicates, limits
IRC133   graphs or calls nested too deep
IRC134   nested graphs that do not fit their operator
IRC136   operands of types that their operator does not take
=======  ===================================================================

What a model says about training, quantization and devices is not kept. Nodes
in an order other than a topological one are sorted, as ONNX Runtime does.

onnx's C++ code does not see the model: it crashes on hostile ones. onnx is used
for protobuf, for its operators' schemas, and for the function bodies of six
operators that depend on the node (`irc.frontend.onnx.special`): it is given that
node alone, with the types of its inputs, once both have been checked.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from irc.errors import Error
from irc.ir.graph import gc_paused

if TYPE_CHECKING:
    from onnx import ModelProto

    from irc.ir import Module

__all__ = ["import_model"]


def import_model(
    model: ModelProto | str | os.PathLike[str],
    folder: str | os.PathLike[str] | None = None,
    refuse_unknown: bool = False,
) -> Module:
    """The module of an ONNX model, opset 6 to the newest of the installed onnx package.

    Names of values survive. Large weights are read when they are first used:
    a file must not be changed, nor a ``ModelProto``, before that (IRC130).
    External data stays mapped: changed in place later, it changes the weights,
    and cut short, it ends the process. Other files may take its place.

    Args:
        model: the model or its path.
        folder: where external data lies, for a ``ModelProto``; by path it is the file's folder.
        refuse_unknown: whether operators that irc does not know are an error (IRC123). Else they pass through: passes
            leave them as they are, and only a run that needs one fails.

    Raises:
        irc.Error: IRC120 to IRC136, see above; ``where`` names the file and the node or value.
    """
    from google.protobuf.message import Error as ProtobufError
    from onnx import ModelProto

    from irc.frontend.onnx.files import DataFolder, Source, read_file
    from irc.frontend.onnx.importer import Importer

    place = ""
    try:
        if isinstance(model, (str, os.PathLike)):
            place = os.fspath(model)
            source = read_file(place)
        elif not isinstance(model, ModelProto):  # type: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
            raise Error("IRC121", f"a model is a path or an onnx.ModelProto, not {type(model).__name__}")
        else:
            source = Source(model, None if folder is None else DataFolder(os.fspath(folder)))
        with gc_paused():
            return Importer(source, refuse_unknown).run()
    except Error as error:
        where = ", ".join(filter(None, (place, error.where)))
        raise Error(error.code, error.message, where) from None
    except ProtobufError as error:  # parts of messages nested too deep are copied to no end
        raise Error("IRC133", f"the model nests too deep: {error}", place) from None
