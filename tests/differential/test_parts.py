"""Parts of tensors: PyTorch knows storages only, so of views of one tensor it says that all may share."""

import torch

from irc.alias import analyze
from tests.alias.slice_programs import PROGRAMS, program, share

READABLE = [key for key in PROGRAMS if key[0] != "onnx"]
"""Programs of operators that PyTorch has."""


def test_pytorch_takes_any_two_views_of_a_tensor_for_one() -> None:
    right: dict[str, int] = {"irc": 0, "PyTorch": 0}
    for key in READABLE:
        graph = program(*key)
        theirs = torch._C.parse_ir(str(graph))
        said = {
            "irc": analyze(graph).may_alias(*graph.outputs),
            "PyTorch": theirs.alias_db().may_contain_alias(*theirs.outputs()),
        }
        assert said["PyTorch"], key
        for name, answer in said.items():
            right[name] += answer == share(*key)
    assert right == {"irc": 55, "PyTorch": 17}
