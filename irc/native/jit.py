"""From LLVM's text to functions in memory.

Invariants:

- A module is compiled to object code, which the cache keeps, and linked into the process. `Code` holds what is linked:
  when the last reference to it goes, so does the memory, so whoever calls an address keeps the `Code`.
- Functions of the library (`library`) are modules of their own, compiled once, optimised, and never freed. Modules that
  call them are compiled without LLVM's optimiser: they are emitted as they should be.
- All of LLVM is called with one lock held.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from threading import RLock
from typing import Any

import llvmlite
from llvmlite import binding as llvm

from irc.native import target
from irc.native.cache import ObjectCache, default_folder
from irc.native.lanes import Make

LOCK = RLock()


class Code:
    """A module in memory.

    Attributes:
        address: of its function.
    """

    def __init__(self, tracker: Any, name: str) -> None:
        self._tracker = tracker
        self.address: int = tracker[name]


class Jit:
    """Compiles and links, for one process.

    Args:
        cache: keeps object code.
    """

    def __init__(self, cache: ObjectCache) -> None:
        self._target = target.current()
        self._compiler = llvm.create_lljit_compiler(self._target.machine(2))
        self._cache = cache
        self._library: dict[str, Code] = {}
        self._count = 0
        self._identity = "\0".join(
            ("irc 1", llvmlite.__version__, str(llvm.llvm_version_info), self._target.cpu, self._target.features)
        )
        self.compiled = 0

    def load(self, text: str, name: str, needs: Mapping[str, Make], *, is_optimised: bool = False) -> Code:
        """The function ``name`` of the module ``text``, which calls the functions ``needs`` of the library."""
        with LOCK:
            for needed, make in needs.items():
                self.library(needed, make)
            key = hashlib.sha256(f"{self._identity}\0{is_optimised}\0{text}".encode()).hexdigest()
            code = self._cache.read(key)
            if code is None:
                code = self._compile(text, is_optimised)
                self._cache.write(key, code)
            self._count += 1
            builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(name)
            for needed in needs:
                builder.import_symbol(needed, self._library[needed].address)
            return Code(builder.link(self._compiler, f"irc{self._count}"), name)

    def library(self, name: str, make: Make) -> None:
        """Have the function ``name`` in the library; ``make`` gives its module, and what that needs."""
        with LOCK:
            if name not in self._library:
                text, needs = make()
                self._library[name] = self.load(text, name, needs, is_optimised=True)

    def address(self, name: str) -> int:
        """Of a function of the library."""
        return self._library[name].address

    def _compile(self, text: str, is_optimised: bool) -> bytes:
        self.compiled += 1
        module = llvm.parse_assembly(text)
        module.verify()
        machine = self._target.machine(2)
        if is_optimised:
            options = llvm.create_pipeline_tuning_options(speed_level=2)
            builder = llvm.create_pass_builder(machine, options)
            builder.getModulePassManager().run(module, builder)
        return machine.emit_object(module)


@cache
def process_jit() -> Jit:
    """The one of this process."""
    with LOCK:
        return Jit(ObjectCache(default_folder()))
