"""Metadata of nodes, values and blocks: what a model says of them, and origins of rewritten nodes.

Metadata are strings by name, and mean nothing to any computation. They are read-only and replaced as a whole, so that
copies share them. Names that begin with ``irc.`` are irc's own; all others are those of the model (ONNX:
``metadata_props``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from irc.ir.kinds import CONSTANT

if TYPE_CHECKING:
    from irc.ir.graph import Graph
    from irc.ir.node import Node

Metadata = Mapping[str, str]

NOTHING: Final[Metadata] = MappingProxyType({})
"""The metadata of whatever has none."""

SOURCE = "irc.source"
"""Of a node that passes have made: the names of the model's nodes that it stands for, in order."""

DOC_STRING = "irc.doc_string"
"""ONNX's ``doc_string``."""

GRAPH_NAME = "irc.graph_name"
"""Of a nested block: what the model calls this graph."""

DENOTATION = "irc.denotation"
"""Of a value: its type's ``denotation``; the paths to those of dimensions and element types follow, as ``.0``."""

DECLARED_TYPE = "irc.declared_type"
"""Of a value: the type that the model declares, which may be wrong: not computed with, but exported again where nothing
contradicts it."""

QUANTIZATION = "irc.quantization."
"""Of a value: what follows is a key of ONNX's ``quantization_annotation``, whose text names no value of the model."""

QUANTIZATION_TENSOR = "irc.quantization_tensor."
"""As `QUANTIZATION`, of keys such as ``SCALE_TENSOR`` whose text names a value of the model."""

NOT_PROPERTIES = (DOC_STRING, GRAPH_NAME, DENOTATION, DECLARED_TYPE, QUANTIZATION, QUANTIZATION_TENSOR)
"""How names of metadata begin that are no ``metadata_props`` in ONNX, but fields of their own."""

MOST_SOURCES = 16
"""How many names a node's source has at most; "..." after them stands for others."""

MOST_CHARACTERS = 4096
"""How long a text may become when texts that differ are merged into it: what comes after is replaced by "..."."""

_MORE = "..."
_BETWEEN_SOURCES, _BETWEEN_TEXTS = ", ", "; "


class HasMetadata:
    """What nodes, values and blocks are: parts of a graph that have metadata."""

    __slots__ = ("_metadata",)  # `NOTHING` from the start: passes read it more often than they create what has it

    if TYPE_CHECKING:
        graph: Graph
        _metadata: Metadata

    @property
    def metadata(self) -> Metadata:
        return self._metadata

    @metadata.setter
    def metadata(self, given: Metadata) -> None:
        self._metadata = frozen(given)
        self.graph.has_metadata |= bool(given)


def quantization(metadata: Metadata) -> dict[str, str]:
    """What ``metadata`` of a value say of its quantization."""
    if not metadata:
        return {}
    return {k: text for k, text in metadata.items() if k.startswith((QUANTIZATION, QUANTIZATION_TENSOR))}


def frozen(given: Mapping[str, str]) -> Metadata:
    """``given`` as metadata. Raises TypeError if something in it is not a string."""
    if given.__class__ is MappingProxyType:
        return given
    for item in given.items():
        if not all(isinstance(text, str) for text in item):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"metadata are strings, not {item!r}")
    return MappingProxyType(dict(given)) if given else NOTHING


def sources(node: Node) -> list[str]:
    """Names of the model's nodes that ``node`` stands for: its own or its first result's by default.

    A constant that no pass made stands for none: ONNX has no nodes for weights.
    """
    known = node.metadata.get(SOURCE)
    if known is not None:
        return known.split(_BETWEEN_SOURCES)
    if node.kind == CONSTANT:
        return []
    return [name] if (name := node.name or (node.outputs[0].name if node.outputs else "")) else []


def provenance(nodes: Iterable[Node]) -> Metadata:
    """The metadata of a node that stands for ``nodes``: theirs merged, and their names as its source."""
    nodes = list(nodes)
    said = [node.metadata for node in nodes]
    found = said[0] if len(said) == 1 else merged(said)
    names = dict.fromkeys([name for node in nodes for name in sources(node)])
    return MappingProxyType({**found, SOURCE: _source_text(names)}) if names else found


def inlined(inner: Node, call: Node) -> Metadata:
    """The metadata of a copy of ``inner``, a node of a function, in place of ``call``.

    Its sources are named as ``call/inner``; nodes without a name, such as those of bodies that irc writes, as ``call``.
    """
    found = merged([inner.metadata, call.metadata])
    own = sources(inner) if inner.name or SOURCE in inner.metadata else []
    names = [f"{outer}/{name}" if name != _MORE else _MORE for outer in sources(call) for name in own]
    return MappingProxyType({**found, SOURCE: _source_text(names or sources(call))})


def merged(parts: Iterable[Metadata]) -> Metadata:
    """Metadata of several as those of one: texts that differ follow each other, each once."""
    given = [part for part in parts if part]
    if len(given) == 1:
        return given[0]
    found: dict[str, dict[str, None]] = {}
    for part in given:
        for key, text in part.items():
            found.setdefault(key, {})[text] = None
    return MappingProxyType({key: _joined(key, list(texts)) for key, texts in found.items()}) if found else NOTHING


def _joined(key: str, texts: list[str]) -> str:
    if len(texts) == 1:
        return texts[0]
    separator = _BETWEEN_SOURCES if key == SOURCE else _BETWEEN_TEXTS
    pieces = dict.fromkeys(piece for text in texts for piece in text.split(separator))
    return _listed(pieces, separator, MOST_SOURCES if key == SOURCE else len(pieces))


def _source_text(names: Iterable[str]) -> str:
    return _listed(names, _BETWEEN_SOURCES, MOST_SOURCES)


def _listed(texts: Iterable[str], separator: str, most: int) -> str:
    """The first ``most`` of ``texts``, or as many as fit, at least one; "..." if that is not all."""
    texts = list(texts)
    if len(texts) == 1:  # of most nodes
        return texts[0]
    kept = [text for text in texts if text != _MORE][:most]
    ends = list(accumulate([len(text) + len(separator) for text in kept]))
    listed = kept[: max(1, bisect_right(ends, MOST_CHARACTERS))]
    return separator.join([*listed, _MORE] if len(listed) < len(texts) else listed)
