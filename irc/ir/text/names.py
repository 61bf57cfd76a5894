r"""How names and strings are written in IR text: which are bare, and how the others are quoted.

Quoting follows TorchScript (``c10::printQuotedString``): C escapes, and octal
UTF-8 bytes for characters that are not printable and for carriage returns, as PyTorch does not
read its own ``\r``. Printable Unicode is not escaped. Lone surrogates, which a
name that was not valid UTF-8 decodes to, are ``\udc80``.
"""

from __future__ import annotations

import re

from irc.ir.polynomials import Size

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\t": "\\t", "\v": "\\v"}
_UNESCAPES = {text[1]: char for char, text in _ESCAPES.items()} | {"'": "'", "r": "\r"}

_NO_ESCAPES = re.compile(r"[ !#-\[\]-~]*")
# Three "digits" are one byte. PyTorch prints bytes above 127 as negative numbers, which
# gives digits below "0" (é is \0)+\/.)); read modulo 256 they are right all the same.
_BYTES_OR_ESCAPE = re.compile(r"((?>(?:\\[)-7]{3})+))|\\u([0-9a-fA-F]{4})|\\(.?)", re.DOTALL)
_ZERO = ord("0") * (64 + 8 + 1)  # what three digits 0 are worth by their code points

_BARE_VALUE = re.compile(r"\w+(?:\.\w+)*", re.ASCII)
_BARE_DIM = re.compile(r"[A-Za-z_]\w*|SS\(-\d+\)", re.ASCII)
_BARE_ATTRIBUTE = re.compile(r"(?!since_version$)[A-Za-z_]\w*", re.ASCII)
_BARE_GRAPH = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*", re.ASCII)
# A trailing _N marks an operator with a subgraph (prim::FusionGroup_0), so it is quoted elsewhere.
_BARE_KIND = re.compile(r"(?!.*_\d+$)[A-Za-z_]\w*(?:\.\w+)*(?:::[A-Za-z_]\w*(?:\.\w+)*)+", re.ASCII)


def quote(text: str) -> str:
    """``text`` in double quotes, in one line, such that ``unquote`` gives exactly ``text`` again."""
    if _NO_ESCAPES.fullmatch(text):
        return f'"{text}"'
    return '"' + "".join([_ESCAPES.get(c) or (c if c.isprintable() else _escaped(c)) for c in text]) + '"'


def unquote(body: str) -> str:
    """What the inside of a quoted string stands for; ValueError at an unknown escape."""
    return _BYTES_OR_ESCAPE.sub(_unescaped, body) if "\\" in body else body


def _escaped(char: str) -> str:
    if "\ud800" <= char <= "\udfff":
        return f"\\u{ord(char):04x}"
    return "".join(f"\\{byte:03o}" for byte in char.encode())


def _unescaped(match: re.Match[str]) -> str:
    octal, code, char = match.groups()
    if octal:
        digits = octal.replace("\\", "").encode("ascii")
        values = zip(digits[::3], digits[1::3], digits[2::3], strict=True)
        return bytes((a * 64 + b * 8 + c - _ZERO) % 256 for a, b, c in values).decode(errors="surrogateescape")
    if code:
        return chr(int(code, 16))
    if char not in _UNESCAPES:
        raise ValueError(f"unknown escape \\{char}")
    return _UNESCAPES[char]


def value_text(name: str) -> str:
    """A value as it is printed: ``%x.1``, ``%"gpu_0/data_0"``."""
    return f"%{name}" if _BARE_VALUE.fullmatch(name) else f"%{quote(name)}"


def dim_text(dim: Size) -> str:
    """A dimension as it is printed: ``3``, ``*``, ``batch``, ``"height / 2"``."""
    if isinstance(dim, str):
        return dim if _BARE_DIM.fullmatch(dim) else quote(dim)
    return "*" if dim is None else integer_text(dim) if isinstance(dim, int) else quote(str(dim))


def integer_text(number: float) -> str:
    """A number as printed; beyond 64 bits in hexadecimal, for which Python has no limit of digits."""
    return hex(number) if isinstance(number, int) and number.bit_length() > 64 else str(number)


def attribute_text(name: str) -> str:
    """The name of an attribute as it is printed."""
    return name if _BARE_ATTRIBUTE.fullmatch(name) else quote(name)


def kind_text(kind: str) -> str:
    """The kind of a node without subgraph as it is printed."""
    return kind if _BARE_KIND.fullmatch(kind) else quote(kind)


def graph_text(name: str) -> str:
    """The head of a graph: TorchScript's bare ``graph``, with the name unless that is ``main``."""
    if name == "main":
        return "graph"
    return f"graph {name if _BARE_GRAPH.fullmatch(name) else quote(name)}"


def note_text(text: str, closed_by: str = "") -> str:
    """A source comment or scope, quoted unless it reads back as it is.

    Args:
        text: what to print.
        closed_by: a character that would end the unquoted text.
    """
    bare = text.isprintable() and text == text.strip() and not text.startswith(('"', "scope:", ": "))
    return text if bare and not (closed_by and closed_by in text) else quote(text)
