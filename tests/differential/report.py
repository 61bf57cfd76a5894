"""How irc's alias analysis and PyTorch's compare, dump by dump: ``python -m tests.differential.report``.

Of PyTorch's answers "may share", "is written" and "may not move", the share
that irc denies: of the graph alone, and if irc is told what the model owns.
Then how many irc alone gives, for reasons that ``answers.py`` requires.
"""

import argparse
import json
import random
import sys
import warnings
from collections.abc import Iterator
from itertools import combinations_with_replacement
from pathlib import Path

from irc.alias.memory_types import has_memory
from irc.ir import Node
from tests.differential.answers import Answers
from tests.differential.both import Both
from tests.differential.dumps import DUMPS

VALUES, MOVES, FAR = 400, 60, 25
"""How many values are compared pairwise, how many moves are tried, and how far at most."""


def analyses(both: Both, answers: Answers, seed: int = 0) -> None:
    """Sharing of pairs of values that have memory, and writers of all values."""
    rng = random.Random(seed)
    values = [v for v in both.values if has_memory(v.type)]
    answers.sharing(both, combinations_with_replacement(rng.sample(values, min(VALUES, len(values))), 2))
    answers.writes(both)


def moves(both: Both, answers: Answers, seed: int = 0) -> None:
    """Random moves, each tried on the graph as it was."""
    rng = random.Random(seed)
    blocks: list[list[Node]] = [list(b.nodes) for b in both.graph.blocks()]
    blocks = [nodes for nodes in blocks if len(nodes) > 1]
    for _ in range(MOVES):
        nodes = rng.choice(blocks)
        at = rng.randrange(len(nodes))
        other = max(0, min(len(nodes) - 1, at + rng.randrange(-FAR, FAR + 1)))
        if at != other:
            answers.motion(both, nodes[at], nodes[other], before=rng.random() < 0.5)


def compare(name: str) -> dict[str, Answers]:
    """What is found about a dump, by what is known: ``alone`` and ``owned``.

    Raises:
        AssertionError: irc's answer is more cautious than PyTorch's, and nothing tells why.
    """
    dump = DUMPS[name]
    alone, owned = Answers(), Answers()
    both = dump.alone()
    analyses(both, alone)
    moves(both, alone)
    analyses(dump.owned(), owned)
    return {"alone": alone, "owned": owned}


def rows(found: dict[str, dict[str, Answers]]) -> Iterator[tuple[str, ...]]:
    """A table: a line for each dump."""
    known = "denied", "... if owned", "irc alone"
    yield ("PyTorch says:", "may share", *known, "is written", *known, "may not move", "denied", "irc alone")
    for name, by in found.items():
        cells = [name]
        for query in ("sharing", "writes", "motion"):
            alone, owned = by["alone"], by["owned"]
            cells += [f"{alone.theirs(query):,}", f"{alone.denied(query):.1%}"]
            if query != "motion":
                cells.append(f"{owned.denied(query):.1%}")
            cells.append(f"{alone.seen[query, True, False]:,}")
        yield tuple(cells)


def main(given: list[str] | None = None) -> int:
    """The command; ``given`` are its arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.report", description=__doc__)
    parser.add_argument("dumps", nargs="*", help=f"which ones; by default all {len(DUMPS)}")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all counts there")
    arguments = parser.parse_args(given)
    found: dict[str, dict[str, Answers]] = {}
    for name in arguments.dumps or DUMPS:
        print(name, file=sys.stderr, flush=True)
        found[name] = compare(name)
    table = list(rows(found))
    widths = [max(map(len, column)) for column in zip(*table)]
    for row in table:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))))
    if arguments.json is not None:
        counts = {name: {known: answers.to_dict() for known, answers in by.items()} for name, by in found.items()}
        arguments.json.write_text(json.dumps(counts, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # TorchScript is deprecated
    sys.exit(main())
