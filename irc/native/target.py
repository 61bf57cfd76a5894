"""LLVM and the target processor. llvmlite has no types: everything of it is `Any` to irc.

`IRC_NATIVE_CPU` names another one than the machine's, in LLVM's words: ``x86-64`` has neither AVX nor FMA.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding
import llvmlite.ir

ir: Any = llvmlite.ir
llvm: Any = llvmlite.binding
VERSION = f"{llvmlite.__version__} {llvm.llvm_version_info}"
"""llvmlite's and LLVM's."""

CPU = "IRC_NATIVE_CPU"
"""The environment variable that names the processor."""


class Target(NamedTuple):
    """A processor.

    Attributes:
        cpu: its name in LLVM's words.
        features: likewise, as ``+avx,-avx2``.
        vector_bytes: what its registers hold.
        has_fma: whether it multiplies and adds with one rounding.
        has_f16c: whether it converts float16.
        has_byte_products: whether it multiplies bytes and adds up four products in 32 bits (VNNI).
    """

    cpu: str
    features: str
    vector_bytes: int
    has_fma: bool
    has_f16c: bool
    has_byte_products: bool

    def lanes(self, itemsize: int) -> int:
        """How many lanes values have, if the largest element among them has ``itemsize`` bytes.

        Four registers of them: chains of dependent operations are bound by latency.
        """
        return 4 * self.vector_bytes // max(itemsize, 4)

    def machine(self, opt: int) -> Any:
        """LLVM's target machine, for code that is optimised at the level ``opt``."""
        return _machine(self, opt)


@cache
def _machine(target: Target, opt: int) -> Any:
    triple = llvm.get_process_triple()
    found = llvm.Target.from_triple(triple)
    return found.create_target_machine(
        cpu=target.cpu, features=target.features, opt=opt, reloc="pic", codemodel="small"
    )


@cache
def current() -> Target:
    """The target of this process. Raises ValueError as `named` does."""
    return named(os.environ.get(CPU, ""))


@cache
def named(cpu: str) -> Target:
    """The processor that LLVM calls ``cpu``; empty: the machine's.

    Raises:
        ValueError: irc knows no such processor, or this machine is none: LLVM, or running the code, would end the
            process.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    own, has = llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features())
    if cpu in ("", own):
        features = ",".join(f"{'+' if has[name] else '-'}{name}" for name in sorted(has))
        return _target(own, features, {name for name in has if has[name]})
    if cpu not in _LEVELS:
        raise ValueError(f"{CPU} is {cpu!r}; it may be {', '.join(_LEVELS)}, or {own}, which this machine is")
    needed = set(" ".join(list(_LEVELS.values())[: list(_LEVELS).index(cpu) + 1]).split())
    missing = sorted(name for name in needed if not has.get(name))
    if missing:
        raise ValueError(f"{CPU} is {cpu!r}, but this machine has no {', '.join(missing)}")
    return _target(cpu, "", needed)


def _target(cpu: str, features: str, has: set[str]) -> Target:
    # Vectors of which integers cannot be multiplied as well are not worth their special cases.
    width = 64 if "avx512bw" in has else 32 if "avx2" in has else 16
    has_byte_products = {64: "avx512vnni", 32: "avxvnni"}.get(width) in has
    return Target(cpu, features, width, "fma" in has, "f16c" in has, has_byte_products)


_LEVELS = {
    "x86-64": "",
    "x86-64-v2": "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe",
    "x86-64-v4": "avx512bw avx512cd avx512dq avx512f avx512vl",
}
"""The levels of the x86-64 psABI: what each adds to the one before."""
