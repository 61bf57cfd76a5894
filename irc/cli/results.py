"""What commands print with ``--json``, where no other part of irc has a class for it.

`tests.json_schemas` writes the schema in docs/reference/ from these classes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from irc.passes.manager import PassRun
from irc.support.remarks import Remark
from irc.tools.inspection import Interface


@dataclass
class Result:
    """What a command has found."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts, lists, strings and numbers, ready for JSON."""
        return asdict(self)


@dataclass
class Printed(Result):
    """What ``irc print`` shows.

    Attributes:
        format: ``text`` or ``svg``.
        text: the model as IR text, or the picture.
        unknown: operators that irc does not know, and only passes through -> nodes.
    """

    format: str
    text: str
    unknown: dict[str, int]


@dataclass
class Optimised(Result):
    """What ``irc opt`` makes of a module.

    Attributes:
        text: the module as IR text.
        written: the file that it was written to; None if it was not.
        passes: the runs of passes, in order.
        stats: how often each pass did what, by ``"pass.key"``.
        remarks: what passes left as it was.
    """

    text: str
    written: str | None
    passes: list[PassRun]
    stats: dict[str, int]
    remarks: list[Remark]


@dataclass
class AliasedValue:
    """A value: its name, the memory that it may denote, and the nodes that write there."""

    name: str
    locations: list[str]
    writers: list[str]


@dataclass
class Aliasing(Result):
    """What ``irc alias`` knows of the values of the main graph."""

    values: list[AliasedValue]


@dataclass
class Writer:
    """A node, and which of the two values it writes."""

    node: str
    writes: list[str]


@dataclass
class Why(Result):
    """Why two values may share memory: ``irc alias --why``.

    Attributes:
        a, b: the values.
        meet: the memory where the chains of facts from both end; None if they never share memory.
        from_a, from_b: these facts.
        writers: the nodes that write what either may be or hold.
    """

    a: str
    b: str
    meet: str | None = None
    from_a: list[str] = field(default_factory=list[str])
    from_b: list[str] = field(default_factory=list[str])
    writers: list[Writer] = field(default_factory=list[Writer])

    def __str__(self) -> str:
        lines = [f"%{self.a} and %{self.b} never share memory"]
        if self.meet is not None:
            lines = [f"%{self.a} and %{self.b} meet at {self.meet}"]
            for name, facts in {self.a: self.from_a, self.b: self.from_b}.items():
                lines += [f"from %{name}:", *(f"  {fact}" for fact in facts)]
        for writer in self.writers:
            lines.append(f"{writer.node}    writes what {' and '.join(f'%{n}' for n in writer.writes)} may be or hold")
        return "\n".join(lines)


@dataclass
class OutputValue:
    """An output of a run.

    Attributes:
        summary: in one line, as without ``--json``.
        dtype, shape: of a tensor; None of anything else.
        min, max, mean: of a tensor with numbers, if they are finite; else None.
    """

    summary: str
    dtype: str | None = None
    shape: list[int] | None = None
    min: float | None = None
    max: float | None = None
    mean: float | None = None


@dataclass
class Ran(Result):
    """What ``irc run`` computed.

    Attributes:
        outputs: by name, in order.
        written: files that were written.
        profile: `irc.runtime.profile.Profile.to_dict`, with ``--profile`` or ``--trace``; else None.
    """

    outputs: dict[str, OutputValue]
    written: list[str]
    profile: dict[str, Any] | None


@dataclass
class Extracted(Result):
    """A part that ``irc extract`` wrote: where, its bytes and nodes, what it takes and gives."""

    path: str
    bytes: int
    nodes: int
    inputs: list[Interface]
    outputs: list[Interface]
