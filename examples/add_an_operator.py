"""Add an operator: a schema row, a kernel and a shape rule, and irc fuses it, plans its memory and runs it.

Prints::

    [['onnx::Relu', 'com.example::Scale']]
    [[0.0, 3.0]]
"""

import numpy as np

import irc
from irc.ir import TensorType, parse_graph
from irc.ops import Operator, register
from irc.passes import shape_rule
from irc.runtime import kernel

register(Operator("com.example::Scale", "(Tensor x) -> Tensor", pointwise=True))


@kernel("com.example::Scale")
def scale(node):
    """A function of arrays; attributes are read once, when the graph is made ready to run."""
    factor = node.attributes.get("factor", 1.0)
    return lambda x, out=None: np.multiply(x, x.dtype.type(factor), out=out)


@shape_rule("com.example::Scale")
def scale_type(types):
    """The type of the operand."""
    return TensorType(types.dtype(0), types.shape(0))


graph = parse_graph("""graph(%x : Float(1, 2)):
  %a : Float(1, 2) = onnx::Relu(%x)
  %y : Tensor = com.example::Scale[factor=3.](%a)
  return (%y)
""")
model = irc.compile(graph)
print([group.operators for group in model.report.groups])
print(model.run({"x": np.float32([[-1, 1]])})["y"].tolist())
