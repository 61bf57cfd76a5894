"""The operators irc knows: one schema row each, as data.

``aten/`` and ``prim.py`` hold TorchScript's operators, ``onnx_alias.py`` those
of ONNX whose results may share memory with their inputs, ``irc.py`` irc's own.
Further rows come by ``register``, from ``plugins.py`` too: packages that are
installed (``docs/adding-an-operator.md``).
"""

from __future__ import annotations

from irc.ir.ops.effects import Effects
from irc.ir.ops.registry import effects, functional_by_default, register, schemas
from irc.ir.ops.resolution import effects_of, resolve, schema_of

__all__ = ["Effects", "effects", "effects_of", "functional_by_default", "register", "resolve", "schema_of", "schemas"]
