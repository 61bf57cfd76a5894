"""What a model declares beside its graph: types of outputs, and fixed sizes of named dimensions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from irc.ir.graph import Graph, Module
from irc.ir.limits import MAX_SIZE
from irc.ir.metadata import DECLARED_TYPE
from irc.ir.node import Value
from irc.ir.text.lexer import STRING_BODY
from irc.ir.text.names import dim_text, unquote
from irc.ir.text.type_parser import parse_type
from irc.ir.types import ANY, TensorType, Type, merged

# What a model declares of its outputs and other values: for users and other tools, but not computed with.
#
# It may be wrong. There is one exception: a scan output of a loop without iterations has no rows to take a shape from,
# and has the declared one (`irc.ir.region_flow`), as in ONNX Runtime.


OUTPUT_TYPE = "output_types."
"""Key of the metadata that keep the type which a model declares of an output, the output's name apart."""


def declared_type(value: Value, metadata: Mapping[str, str]) -> Type | None:
    """The declared type of an output of the main graph, or None."""
    text = metadata.get(f"{OUTPUT_TYPE}{value.name}")
    return None if text is None else parse_type(text)


def change_declared(metadata: dict[str, str], change: Callable[[Type], Type]) -> None:
    """Replace every declared output type by ``change(type)``."""
    declared = {key: parse_type(text) for key, text in metadata.items() if key.startswith(OUTPUT_TYPE)}
    metadata.update((key, str(change(type))) for key, type in declared.items())


def change_declared_type(value: Value, change: Callable[[Type], Type]) -> None:
    """Replace the type that the model declares of ``value``, if any, by ``change(type)``."""
    if value.metadata and (text := value.metadata.get(DECLARED_TYPE)) is not None:
        value.metadata = {**value.metadata, DECLARED_TYPE: str(change(parse_type(text)))}


def told_type(value: Value) -> Type:
    """The type of ``value``; for an output of the main graph, completed by what its module declares."""
    module = value.graph.module
    if module is None or not value.graph.is_main or value not in value.graph.outputs:
        return value.type
    return completed(value.type, declared_type(value, module.metadata))


def declared_beyond(graph: Graph) -> dict[Value, str]:
    """Outputs of ``graph`` -> types that the module declares, where they say more than the values' own."""
    module = graph.module
    if module is None or not graph.is_main or not module.metadata:
        return {}
    said = {value: module.metadata.get(f"{OUTPUT_TYPE}{value.name}") for value in graph.outputs}
    return {value: text for value, text in said.items() if text is not None and told_type(value) != value.type}


def take_declared(module: Module) -> None:
    """Let ``module`` declare the types of outputs that are metadata of these: text has them there."""
    for value in module.main.outputs:
        text = value.metadata.get(DECLARED_TYPE)
        if text is not None and completed(value.type, parse_type(text)) != value.type:
            module.metadata[f"{OUTPUT_TYPE}{value.name}"] = text
            value.metadata = {key: said for key, said in value.metadata.items() if key != DECLARED_TYPE}


def completed(type: Type, declared: Type | None) -> Type:
    """``type`` with missing sizes and names filled in from ``declared``; Any has none to fill."""
    if declared is None:
        return type
    return declared if type is ANY else merged(type, declared, _completed)


def _completed(type: TensorType, declared: TensorType) -> TensorType:
    shape = declared.shape if type.shape is None else type.shape
    if shape is None or declared.shape is None or len(shape) != len(declared.shape):
        return type
    sizes = [said if known is None else known for known, said in zip(shape, declared.shape, strict=True)]
    return TensorType(type.dtype or declared.dtype, tuple(sizes))


# Fixed sizes of named dimensions, and how they are written: ``batch=1, "past + new"=5``.


FIXED_SIZES = "irc.sizes"
"""Key of the metadata that keeps, as text, which names the inputs had and which sizes have taken their places."""

FIXED_SIZES_KEYS = (f"metadata_props.{FIXED_SIZES}", FIXED_SIZES)
"""That, after what a model that irc has written as ONNX brings along."""

_SIZE = re.compile(rf'(?:\s*"({STRING_BODY})"\s*|([^",=]+))=\s*([0-9]{{1,19}})\s*(,|\Z)')


class GivenTwiceError(ValueError):
    """A text is well formed, but has two sizes for a name."""


def sizes_text(sizes: Mapping[str, int]) -> str:
    """``sizes`` as text for `read_sizes` and messages; names are quoted as in the text of types."""
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
            raise ValueError(f"expected NAME=SIZE,... with integers below 2**63, not {text[at:]!r:.80}")
        if name in sizes:
            raise GivenTwiceError(f"the size of {name!r} is given twice")
        sizes[name] = int(size)
        at, more = match.end() if match else at, bool(comma)
    return sizes


def fixed_sizes(metadata: Mapping[str, str]) -> dict[str, int]:
    """The fixed sizes in a module's metadata, by the names that they replace; malformed ones are ignored."""
    sizes: dict[str, int] = {}
    for key in FIXED_SIZES_KEYS:
        try:
            sizes |= read_sizes(metadata.get(key, ""))
        except ValueError:  # a model's metadata may hold anything
            continue
    return sizes
