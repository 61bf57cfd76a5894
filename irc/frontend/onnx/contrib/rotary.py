"""RotaryEmbedding of ``com.microsoft``: it may be given only a first position, and the cosines may imply the heads."""

from __future__ import annotations

from irc.frontend.onnx.contrib.body import FAR, Body
from irc.frontend.onnx.contrib.table import Row, row


def rotated(b: Body, x: str, positions: str, cos: str, sin: str, interleaved: int) -> str:
    """``x``, (batch, heads, sequence, size), rotated as far along the last axis as there are cosines."""
    half = b.size(cos, 1)
    words = {"interleaved": interleaved}
    if half is not None:
        return b("RotaryEmbedding", x, cos, sin, positions, rotary_embedding_dim=2 * half, **words)
    width = b("Mul", b("Shape", cos, start=1), [2])
    first = b("Slice", x, [0], width, [3])
    rest = b("Slice", x, width, [FAR], [3])
    return b("Concat", b("RotaryEmbedding", first, cos, sin, positions, **words), rest, axis=3)


def _rotary(b: Body) -> str:
    of_node = b.attributes
    heads, width = of_node["num_heads"], of_node["rotary_embedding_dim"]
    if width < 0 or heads < 0 or width % 2:
        b.wrong(f"rotary_embedding_dim is {width} and num_heads {heads}")
    if width and not heads:
        b.wrong("attribute 'num_heads' must be given with rotary_embedding_dim")
    if of_node["scale"] != 1:
        b.refuse(f"scale is {of_node['scale']}")

    def by_head() -> list[str]:
        return [_rotate(b, "input")]

    def joined() -> list[str]:
        """The result for an input (batch, sequence, heads * size); the cosines give the heads if the node does not."""
        size = [-1] if heads else b("Mul", b("Shape", "cos_cache", start=1), [2])
        apart = b("Reshape", "input", b("Concat", [0, 0], [heads or -1], size, axis=0))
        turned = _rotate(b, b("Transpose", apart, perm=[0, 2, 1, 3]))
        return [b("Reshape", b("Transpose", turned, perm=[0, 2, 1, 3]), b("Shape", "input"))]

    rank = b.rank("input")
    if rank is not None:
        return (by_head() if rank == 4 else joined())[0]
    is_by_head = b("Equal", b("Size", b("Shape", "input")), 4)
    return b.choose(is_by_head, by_head, joined)[0]


def _rotate(b: Body, x: str) -> str:
    """``x``, by head, at the positions of the node."""
    return rotated(b, x, _positions(b, x), "cos_cache", "sin_cache", b.attributes["interleaved"])


def _positions(b: Body, x: str) -> str:
    """The positions of ``x``, (batch, heads, sequence, size), as (batch, sequence); a node may give the first only."""
    if b.rank("position_ids") == 2:
        return "position_ids"
    shape = b("Shape", "position_ids")
    rank = b("Size", shape)
    matrix = b("Reshape", "position_ids", b("Slice", b("Concat", [1], shape, axis=0), [-2], [FAR], [0]))
    length = b("Shape", x, start=2, end=3)
    steps = b("Mul", b("Range", 0, b("Squeeze", length), 1), b("Sub", 2, rank))
    return b("Expand", b("Add", matrix, steps), b("Concat", b("Shape", x, end=1), length, axis=0))


ROWS: list[Row] = [
    row(
        "RotaryEmbedding(input, position_ids, cos_cache, sin_cache) -> output",
        _rotary,
        "int interleaved = 0, int is_packed_batching = 0, int num_heads = 0, int rotary_embedding_dim = 0,"
        "float scale = 1",
        since=23,
    ),
]
