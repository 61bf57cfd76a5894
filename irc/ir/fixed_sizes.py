"""Fixed sizes of named dimensions, and how they are written: ``batch=1, "past + new"=5``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from irc.ir.limits import MAX_SIZE
from irc.ir.text.lexer import STRING_BODY
from irc.ir.text.names import dim_text, unquote

FIXED_SIZES = "irc.sizes"
"""Key of the metadata that keeps, as text, which names the inputs had and which sizes have taken their places."""

FIXED_SIZES_KEYS = (f"metadata_props.{FIXED_SIZES}", FIXED_SIZES)
"""That, after what a model that irc has written as ONNX brings along."""

_SIZE = re.compile(rf'(?:\s*"({STRING_BODY})"\s*|([^",=]+))=\s*([0-9]{{1,19}})\s*(,|\Z)')


class GivenTwiceError(ValueError):
    """A text is well formed, but has two sizes for a name."""


def sizes_text(sizes: Mapping[str, int]) -> str:
    """``sizes`` in the form that `read_sizes` reads and messages use; names are quoted as in the text of types."""
    return ", ".join(f"{dim_text(name)}={size}" for name, size in sizes.items())


def read_sizes(text: str) -> dict[str, int]:
    """The sizes in a text, by name; bare names hold no comma, quote or equals sign.

    ValueError if it is malformed; GivenTwiceError if it has a name twice.
    """
    sizes: dict[str, int] = {}
    at, more = 0, bool(text.strip())
    while more:
        match = _SIZE.match(text, at)
        quoted, bare, size, comma = match.groups() if match else (None, "", "", "")
        name = bare.strip() if quoted is None else unquote(quoted)
        if not name or int(size) > MAX_SIZE:
            raise ValueError(f"expected NAME=SIZE,... with whole numbers below 2**63, not {text[at:]!r:.80}")
        if name in sizes:
            raise GivenTwiceError(f"the size of {name!r} is given twice")
        sizes[name] = int(size)
        at, more = match.end() if match else at, bool(comma)
    return sizes


def fixed_sizes(metadata: Mapping[str, str]) -> dict[str, int]:
    """The sizes in the metadata of a module, by the names that they replace. Malformed entries are ignored."""
    sizes: dict[str, int] = {}
    for key in FIXED_SIZES_KEYS:
        try:
            sizes |= read_sizes(metadata.get(key, ""))
        except ValueError:  # a model's metadata may hold anything
            continue
    return sizes
