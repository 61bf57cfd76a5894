"""The IR: types, values, nodes, blocks, graphs, modules; schemas; text; verifier."""

from irc.ir.builder import Builder
from irc.ir.equal import structurally_equal
from irc.ir.graph import Graph, Module
from irc.ir.node import Block, Node, Use, Value
from irc.ir.objects import EnumMember
from irc.ir.tensor import Tensor, WeightTable
from irc.ir.text.parser import parse_graph, parse_module
from irc.ir.text.printer import Opaque
from irc.ir.text.type_parser import parse_type
from irc.ir.types import DType, TensorType, Type

__all__ = [
    "Block",
    "Builder",
    "DType",
    "EnumMember",
    "Graph",
    "Module",
    "Node",
    "Opaque",
    "Tensor",
    "TensorType",
    "Type",
    "Use",
    "Value",
    "WeightTable",
    "parse_graph",
    "parse_module",
    "parse_type",
    "structurally_equal",
]
