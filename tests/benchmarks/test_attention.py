"""The benchmark's attention is one operator, and gives what it gives without passes."""

import irc
from benchmarks.runtime import attention
from benchmarks.runtime.attention import Size


def test_rows():
    sizes = (Size(2, 2, 300), Size(8, 2, 128))
    rows = {row.name: row for row in attention.measure(turns=1, sizes=sizes)}
    assert rows["attention, 2 heads of 300/irc"].value > 0
    assert rows["attention, 2 heads of 300/arena of irc"].value == 0
    assert rows["attention, 2 heads of 300/arena of irc without passes"].value >= 2 * 300 * 300 * 4
    assert rows["attention, 8 heads of 128 on 2/irc without passes"].value > 0


def test_keys_of_shared_heads_are_not_repeated():
    compiled = irc.compile(attention.model(Size(8, 2, 128)))
    kinds = {node.kind for node in compiled.graph.walk()}
    assert not kinds & {"onnx::Expand", "onnx::Unsqueeze"}
