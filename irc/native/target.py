"""The processor that code is emitted for.

`IRC_NATIVE_CPU` names another one than the machine's, in LLVM's words: ``x86-64`` has neither AVX nor FMA. Code for a
processor that this machine is not may end the process.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any, NamedTuple

from irc.native.llvm import binding as llvm

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
    """

    cpu: str
    features: str
    vector_bytes: int
    has_fma: bool
    has_f16c: bool

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
    """The target of this process."""
    return named(os.environ.get(CPU, ""))


@cache
def named(cpu: str) -> Target:
    """The processor that LLVM calls ``cpu``; empty: the machine's."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if cpu:
        known = cpu.startswith("x86-64-v") and cpu[8:] in ("3", "4")
        has = {"avx": known, "fma": known, "f16c": known, "avx512f": cpu.endswith("v4")}
        features = ""
    else:
        cpu, has = llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features())
        features = ",".join(f"{'+' if has[name] else '-'}{name}" for name in sorted(has))
    width = 64 if has.get("avx512f") else 32 if has.get("avx") else 16
    return Target(cpu, features, width, bool(has.get("fma")), bool(has.get("f16c")))
