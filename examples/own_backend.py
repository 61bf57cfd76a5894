"""A backend of one's own: it computes fusion groups of products and sums by one generated lambda.

A real backend would compile them; what irc asks of either is the same. A backend may decline any group, with a reason.

Prints::

    [11.0, 22.0] compiled: 1
    declined: there is no expression for onnx::Exp
"""

import numpy as np

import irc
from irc.ir import Graph, parse_graph
from irc.runtime.backends import Backend, Declined

SIGNS = {"onnx::Add": "+", "onnx::Mul": "*", "onnx::Sub": "-"}
TEXT = """graph(%x : Float(2), %y : Float(2)):
  %a : Float(2) = onnx::Mul(%x, %y)
  %b : Float(2) = onnx::Add(%a, %x)
  return (%b)
"""


class Expressions(Backend):
    """Writes a group as one expression."""

    name = "expressions"

    def refuses(self, group: Graph) -> Declined | None:
        """Asked once for each group of a model."""
        unknown = sorted({node.kind for node in group.nodes} - SIGNS.keys())
        return Declined(f"there is no expression for {', '.join(unknown)}") if unknown else None

    def compile_group(self, group: Graph, operands: object) -> object:
        """Asked for each combination of operand types; returns a kernel of arrays."""
        names = {value: f"x{i}" for i, value in enumerate(group.inputs)}  # never names from the model
        texts = dict(names)
        for node in group.nodes:
            texts[node.output] = f"({f' {SIGNS[node.kind]} '.join(texts[value] for value in node.inputs)})"
        function = eval(f"lambda {', '.join(names.values())}: {texts[group.outputs[0]]}")

        def kernel(*arrays, out=None):
            result = function(*arrays)
            if out is None:
                return result
            out[...] = result
            return out

        return kernel


feeds = {"x": np.float32([1, 2]), "y": np.float32([10, 10])}
model = irc.compile(parse_graph(TEXT), backend=Expressions())
print(model.run(feeds)["b"].tolist(), "compiled:", model.counters.compiled)

other = irc.compile(parse_graph(TEXT.replace("Add(%a, %x)", "Exp(%a)")), backend=Expressions())
other.run(feeds)
print("declined:", *other.report.declined)
