"""Ask why operators were not fused, and apply the remedy: a write in between.

Prints::

    with the write in place: 2 groups
      %a, %b = prim::FusionGroup: does not join %d: it cannot be moved next to it: %w = aten::neg_ in between ...
        %w blocks: %a may be temporary %a : Float(4)    by %a, %b = prim::FusionGroup(%x)
        remedy: run the pass remove-mutation before fuse
    without mutation: 1 group
"""

from irc.ir import parse_graph
from irc.passes import PassManager
from irc.passes.manager import PassReport

TEXT = """graph(%x : Float(4)):
  %1 : int = prim::Constant[value=1]()
  %a : Float(4) = aten::mul(%x, %x)
  %b : Float(4) = aten::relu(%a)
  %w : Float(4) = aten::neg_(%a)
  %c : Float(4) = aten::exp(%b)
  %d : Float(4) = aten::add(%c, %a, %1)
  return (%d)
"""


def fused(passes: str, groups: int) -> PassReport:
    """What the passes report; prints how many fusion groups they leave, which must be ``groups``."""
    graph = parse_graph(TEXT)
    report = PassManager(passes).run(graph)
    found = sum(node.kind == "prim::FusionGroup" for node in graph.nodes)
    print(f"{found} group{'s' * (found != 1)}")
    assert found == groups
    return report


print("with the write in place: ", end="")
(remark,) = fused("fuse", groups=2).remarks
print(f"  {remark.where}: {remark.reason}")
print(f"    %{remark.blocker} blocks: {remark.aliasing[0]}")

remedy = remark.remedy
assert remedy is not None and remedy.action == "add-pass"
print(f"    remedy: {remedy.text}")
print("without mutation: ", end="")
fused(f"{remedy.targets[0]},{remedy.value}", groups=1)
