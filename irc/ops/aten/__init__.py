"""Records of TorchScript's pointwise operators.

Semantics are those on tensors, once operands have the element type in which the operator takes them; numbers among the
operands are rounded to it too. Keyword-only parameters are further arguments, in the order of the schema.
"""
