"""llvmlite, which has no types: everything of it is `Any` to irc."""

from __future__ import annotations

from typing import Any

import llvmlite
import llvmlite.binding
import llvmlite.ir

ir: Any = llvmlite.ir
binding: Any = llvmlite.binding
VERSION = f"{llvmlite.__version__} {binding.llvm_version_info}"
"""llvmlite's and LLVM's."""
