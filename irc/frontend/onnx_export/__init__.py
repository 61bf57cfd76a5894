"""Modules to ONNX models.

Errors are ``irc.Error`` with one of these codes:

=======  ===================================================================
IRC350   something that ONNX cannot express: operators, types, constants
IRC351   operators of versions that no operator set has together
IRC352   a model too large for one message
IRC501   a file cannot be written
IRC503   a file that must not be replaced: the model is read from it
=======  ===================================================================

The model written means what the module does: fusion groups and in-place
operators are taken apart, ``irc::`` operators decomposed, and every operator
keeps the version it is bound to. Names and types of inputs and outputs stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.frontend.onnx_export.model import save_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx import ModelProto

    from irc.ir import Module

__all__ = ["export_model", "save_model"]


def export_model(module: Module, metadata: Mapping[str, str] | None = None) -> ModelProto:
    """The ONNX model of ``module``, which is not changed. All weights are in the message.

    Args:
        module: any module whose operators are those of ONNX.
        metadata: entries for the model's ``metadata_props``, beside those that the imported model had.

    Raises:
        irc.Error: IRC350, IRC351; IRC352 if the message would exceed what protobuf can write (2 GB): `save_model`
            writes such models.
    """
    from irc.frontend.onnx_export.model import write_model
    from irc.frontend.onnx_export.tensors import InMessage

    return write_model(module, InMessage(), metadata)
