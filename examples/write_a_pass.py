"""Write a pass: replace ``Neg(Neg(x))`` by ``x`` where memory allows it.

The result of an operator is memory of its own, `x` is not. If something writes into either, the two must stay apart,
which ``rewriter.can_share`` asks the alias analysis.

Prints::

    1 replaced
    %y = aten::exp(%x)
    left alone: one of the two is written
"""

from dataclasses import dataclass
from typing import ClassVar

from irc.ir import Graph, parse_graph
from irc.passes import PassContext, PassManager, register

TEXT = """graph(%x : Tensor):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%a)
  %y : Tensor = aten::exp(%b)
  return (%y)
"""


@register
@dataclass(frozen=True)
class DoubleNegation:
    """Replace the negation of a negation by what was negated."""

    name: ClassVar[str] = "double-negation"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Look at every node, nested ones too."""
        rewriter = ctx.rewriter(graph)
        changed = False
        for node in graph.walk():
            inner = node.inputs[0].made_by("aten::neg") if node.kind == "aten::neg" else None
            if inner is None:
                continue
            if not rewriter.can_share(node.output, inner.inputs[0]):
                ctx.note(node, "left alone: one of the two is written")
            elif ctx.allow(node):
                changed |= rewriter.replace_node(node, [inner.inputs[0]])
                ctx.count("replaced")
        return changed


graph = parse_graph(TEXT)
report = PassManager("double-negation,dce", ["verify-each", "verify-alias"]).run(graph)
print(report.stats["double-negation.replaced"], "replaced")
(node,) = graph.nodes
print(node)

written = parse_graph(TEXT.replace("exp(%b)", "exp_(%b)"))
for remark in PassManager([DoubleNegation()]).run(written).remarks:
    print(remark.reason)
