"""Records of a pipeline's passes, and remarks on missed optimisations: the reason and remedy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True)
class PassRun:
    """One run of a pass: its name, seconds without instruments, and whether it changed anything."""

    name: str
    seconds: float
    changed: bool


# What remarks are about.

NOT_FUSED = "not fused"
NOT_IN_PLACE = "not in place"
NOT_FOLDED = "not folded"
NOT_MERGED = "not merged"
COPIED = "copied"
PEAK = "peak memory"

MOST_REMARKS = 1000
"""How many remarks of one pass are kept; the statistic ``remarks-left-out`` counts the others."""


@dataclass(frozen=True)
class Remedy:
    """A change of the model, of the pipeline or of the call after which a remark is gone.

    Attributes:
        action: one of those that the functions below make.
        targets: the values, nodes (by a result), sizes or passes that it changes; names of values are without ``%``.
        value: what else there is to say of it.
        text: all of that in words.
    """

    action: str
    targets: list[str]
    value: str
    text: str


def donate(inputs: Iterable[str]) -> Remedy:
    """The caller gives up the arrays of ``inputs``."""
    names = list(inputs)
    return Remedy("donate", names, "", f"give up the caller's arrays: model.run(feeds, donate={names})")


def fix_sizes(sizes: Iterable[str], size: int | None = None, same: bool = True) -> Remedy:
    """The remedy to compile for one size of each of these dimensions: ``size``, or the ``same`` for all."""
    names, number = list(dict.fromkeys(sizes)), "N" if size is None else str(size)
    text = f"compile for one size: {' '.join(f'--fix {name}={number}' for name in names)}"
    is_open = len(names) > 1 and size is None and same
    value = "same" if is_open else "" if size is None else number
    return Remedy("fix-sizes", names, value, text + (", the same N for each" if is_open else ""))


def move_before(nodes: Iterable[str], point: str) -> Remedy:
    """The ``nodes`` go right before the one that gives ``point``, in this order."""
    names = list(nodes)
    return Remedy("move-before", names, point, f"move {_listed(names)} before %{point}")


def split_use(user: str, value: str) -> Remedy:
    """Repeat ``value``'s node right before ``user``'s producer, which then uses the second result."""
    text = f"let %{user} use a second %{value}, computed right before it (after cse, which would merge the two)"
    return Remedy("split-use", [user], value, text)


def set_option(name: str, option: str, value: int) -> Remedy:
    """The pass ``name`` has this ``value`` of an option."""
    return Remedy("set-option", [name], f"{option}={value}", f"set the option of the pass: {name}{{{option}={value}}}")


def add_pass(name: str, before: str) -> Remedy:
    """The pass ``name`` runs before the pass ``before``; at the end of the pipeline if that is empty."""
    where = f"before {before}" if before else "at the end of the pipeline"
    return Remedy("add-pass", [name], before, f"run the pass {name} {where}")


def declare(values: Iterable[str]) -> Remedy:
    """The model says the element types and shapes of ``values``."""
    names = list(dict.fromkeys(values))
    return Remedy("declare", names, "", f"declare element type and shape of {_listed(names)}")


def leave_out(outputs: Iterable[str]) -> Remedy:
    """The caller does not ask for ``outputs``."""
    names = list(outputs)
    return Remedy("leave-out", names, "", f"ask for the other outputs only, without {_listed(names)}")


def return_too(result: str, operand: str) -> Remedy:
    """The graph returns ``result`` too, which the next run is given as ``operand``."""
    return Remedy("return-too", [result], operand, f"return %{result} too, and give it as %{operand} to the next run")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"%{name}" for name in names)


class Reason(str):
    """Why something was not optimised, as text, with the obstructing value or node and the remedy."""

    blocker: str
    remedy: Remedy | None

    def __new__(cls, text: str, blocker: str = "", remedy: Remedy | None = None) -> Self:
        made = super().__new__(cls, text)
        made.blocker, made.remedy = blocker, remedy
        return made


@dataclass(frozen=True)
class Remark:
    """Something that was left as it was, why, and what would change that.

    Attributes:
        pass_name: the pass that left it, or would do it.
        where: the node or value meant.
        reason: why, in one sentence.
        what: `NOT_FUSED`, `NOT_IN_PLACE`, `NOT_FOLDED`, `NOT_MERGED`, `COPIED`, `PEAK`; empty for anything else.
        blocker: the value or node in the way; empty if there is none, or it is not known.
        aliasing: why the blocker touches the memory in question, as `AliasDb.why` tells it.
        remedy: what makes the remark go away; None if nothing that is known of does.
    """

    pass_name: str
    where: str
    reason: str
    what: str = ""
    blocker: str = ""
    aliasing: list[str] = field(default_factory=list[str])
    remedy: Remedy | None = None

    def __str__(self) -> str:
        return f"{self.pass_name}: {self.where}: {self.reason}"

    def lines(self) -> list[str]:
        """The reason, the alias facts and the remedy, for people to read below what names the place."""
        remedy = [] if self.remedy is None else [f"remedy: {self.remedy.text}"]
        return [self.reason, *(f"  {fact}" for fact in self.aliasing), *remedy]

    def concerns(self, text: str) -> bool:
        """Whether ``text`` is its pass, what it is about, or a value or node named in its place or in the way."""
        wanted = text.removeprefix("%")
        words = f"{self.where} {self.blocker}".replace(",", " ").replace("'", " ").replace('"', " ").split()
        return text in (self.pass_name, self.what) or wanted in [word.removeprefix("%") for word in words]
