"""Ask why operators were not fused: a write in between, and its remedy.

Prints::

    with the write in place: 2 groups
      does not join %d: it cannot be moved next to it: ...
    without mutation: 1 group
"""

from irc.ir import parse_graph
from irc.passes import PassManager

TEXT = """graph(%x : Float(4)):
  %1 : int = prim::Constant[value=1]()
  %a : Float(4) = aten::mul(%x, %x)
  %b : Float(4) = aten::relu(%a)
  %w : Float(4) = aten::neg_(%a)
  %c : Float(4) = aten::exp(%b)
  %d : Float(4) = aten::add(%c, %a, %1)
  return (%d)
"""


def groups(passes: str) -> int:
    """How many fusion groups the passes leave; prints why others were rejected."""
    graph = parse_graph(TEXT)
    report = PassManager(passes).run(graph)
    found = sum(node.kind == "prim::FusionGroup" for node in graph.nodes)
    print(f"{found} group{'s' * (found != 1)}")
    for remark in report.remarks:
        print(f"  {remark.reason}")
    return found


print("with the write in place: ", end="")
assert groups("fuse") == 2
print("without mutation: ", end="")
assert groups("remove-mutation,fuse") == 1
