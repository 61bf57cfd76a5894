"""From what is to be emitted to functions in memory.

Invariants:

- What a module's text is made of has a *key*, a text that tells it apart from all others: where object code for it is
  at hand, in the process or in the cache, nothing is emitted. The cache's names also depend on the sources of what
  emits, on LLVM's version and on the processor.
- A module is compiled to object code and linked into the process. `Code` holds what is linked: when the last reference
  to it goes, so does the memory, so whoever calls an address keeps the `Code`.
- Functions of the library (`Make`) are modules of their own, compiled once, optimised, and never freed. Modules that
  call them are not given to LLVM's optimiser: they are emitted as they should be.
- All of LLVM is called with one lock held.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any
from weakref import WeakValueDictionary

from irc.native.cache import ObjectCache, default_folder
from irc.native.target import VERSION, Target, current, llvm
from irc.runtime.bounds import pace

LOCK = RLock()

PACE = "irc.pace"
"""The symbol of the Python function `irc.runtime.bounds.pace`, which loops call."""

Make = Callable[[], tuple[str, Mapping[str, Any]]]
"""Emits a module: its text, and the functions of the library that it calls, each with what emits that."""


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
        target: what it compiles for; None: the process's.

    Attributes:
        compiled: how many modules were compiled, not found in the cache.
    """

    def __init__(self, cache: ObjectCache, target: Target | None = None) -> None:
        self._target = target or current()
        self._compiler = llvm.create_lljit_compiler(self._target.machine(2))
        self._cache = cache
        self._library: dict[str, tuple[int, object]] = {PACE: (id(pace), pace)}  # addresses, and what lies there
        self._codes: WeakValueDictionary[str, Code] = WeakValueDictionary()
        self._linked = 0
        self._identity = "\0".join((VERSION, _sources(), self._target.cpu, self._target.features))
        self.compiled = 0

    def load(self, name: str, key: str, make: Make) -> Code:
        """The function ``name`` of the module with this key, which ``make`` emits if need be."""
        with LOCK:
            found = self._codes.get(key)
            if found is None:
                found = self._codes[key] = self._load(name, key, make, is_optimised=False)
            return found

    def library(self, name: str, make: Make) -> int:
        """The address of a function of the library; its name is its key."""
        with LOCK:
            if name not in self._library:
                code = self._load(name, name, make, is_optimised=True)
                self._library[name] = code.address, code
            return self._library[name][0]

    def _load(self, name: str, key: str, make: Make, is_optimised: bool) -> Code:
        entry = hashlib.sha256(f"{self._identity}\0{key}".encode()).hexdigest()
        needs, code = self._kept(entry)
        if not code:
            text, made = make()
            for needed, make_needed in made.items():
                self.library(needed, make_needed)
            needs, code = list(made), self._compile(text, is_optimised)
            self._cache.write(entry, " ".join(needs).encode() + b"\n" + code)
        self._linked += 1
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(name)
        for needed in needs:
            builder.import_symbol(needed, self._library[needed][0])
        return Code(builder.link(self._compiler, f"irc{self._linked}"), name)

    def _kept(self, entry: str) -> tuple[list[str], bytes]:
        """What the cache has: called library functions and object code, empty if it has none."""
        content = self._cache.read(entry) or b""
        header, _, code = content.partition(b"\n")
        needs = header.decode().split()
        return needs, code if all(map(self._has, needs)) else b""

    def _has(self, name: str) -> bool:
        """Whether ``name`` is in the library, or gets there from the cache."""
        try:
            self.library(name, _absent)
        except LookupError:
            return False
        return True

    def _compile(self, text: str, is_optimised: bool) -> bytes:
        self.compiled += 1
        with _shown(f"irc compiles native code ({self.compiled}), which is kept for later"):
            return self._object_code(text, is_optimised)

    def _object_code(self, text: str, is_optimised: bool) -> bytes:
        module = llvm.parse_assembly(text)
        module.verify()
        machine = self._target.machine(2)
        if is_optimised:
            options = llvm.create_pipeline_tuning_options(speed_level=2)
            builder = llvm.create_pass_builder(machine, options)
            builder.getModulePassManager().run(module, builder)
        return machine.emit_object(module)


@contextmanager
def _shown(line: str) -> Generator[None]:
    """Show ``line`` meanwhile, if errors go to a terminal."""
    stream = sys.stderr
    if stream is None or not stream.isatty():  # type: ignore[reportUnnecessaryComparison]  # None without a console
        yield
        return
    stream.write(line)
    stream.flush()
    try:
        yield
    finally:
        stream.write("\r\x1b[K")
        stream.flush()


def _absent() -> tuple[str, Mapping[str, Any]]:
    raise LookupError("it is not in the cache")


def _sources() -> str:
    """A hash of the sources that decide what is emitted."""
    folder = Path(__file__).parent.parent
    files = sorted(path for part in ("native", "ops") for path in (folder / part).rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


@cache
def process_jit() -> Jit:
    """The one of this process."""
    with LOCK:
        return Jit(ObjectCache(default_folder()))
