"""Records of what a pipeline did, for passes and compiled models alike."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PassRun:
    """One run of a pass: its name, the seconds it took (instruments not counted), whether it changed anything."""

    name: str
    seconds: float
    changed: bool


NO_MERGER = "does not join"
"""How the reasons begin why an operator stays outside of a fusion group."""


@dataclass(frozen=True)
class Refusal:
    """Something that a pass left as it was.

    Attributes:
        pass_name: the pass.
        where: the node or value meant.
        reason: why, in one sentence.
    """

    pass_name: str
    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.pass_name}: {self.where}: {self.reason}"
