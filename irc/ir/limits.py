"""How deeply IR may nest, and how large its parts may be.

Models are untrusted. Printing, comparing and hashing types, cloning
subgraphs and many passes recurse along nesting, so it is bounded far below
what would exhaust Python's stack, and far above what real models hold.
"""

MAX_BLOCK_DEPTH = 200
"""Blocks nested in each other, the graph's own included."""

MAX_BLOCKS = 1000
"""Blocks of one node, for which an If needs two: nodes hold them in tuples and look them up one by one."""

MAX_SUBGRAPH_DEPTH = 16
"""Graphs nested in each other's attributes, the outermost included."""

MAX_TYPE_DEPTH = 64
"""Types nested in each other: ``int[][]`` is 3 deep."""

MAX_SIZE = (1 << 63) - 1
"""Of one dimension: what files and text can say, ONNX's and irc's."""

MIN_INTEGER, MAX_INTEGER = -(1 << 63), (1 << 64) - 1
"""Of numbers in attributes and what callers pass: the integers that NumPy has types for, signed or not."""

MAX_ELEMENTS = 1 << 58
"""Elements of a tensor that a pass makes, zeros among its sizes not counted: NumPy's views have no more."""

MAX_RANK = 64
"""Dimensions of a tensor: NumPy's arrays have no more."""

MAX_LITERAL_DEPTH = 64
"""Lists, tuples and dictionaries nested in each other in an attribute's value."""
