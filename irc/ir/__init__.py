"""The IR: types, values, nodes, blocks, graphs, modules; schemas; text; verifier.

``__all__`` lists what others build on. What else is named here, irc's other layers often need.
"""
# pyright: reportUnusedImport=false

from irc.ir.builder import Builder
from irc.ir.clone import clone_node, counterpart, dissolve_groups, module_of
from irc.ir.constants import constant_tensor, constant_value, is_constant, is_none, one_number
from irc.ir.equal import structurally_equal
from irc.ir.graph import Graph, Module
from irc.ir.kinds import CALL, CONSTANT, DOMAINS, GROUP, IDENTITY, IF
from irc.ir.limits import MAX_ELEMENTS, MAX_RANK, MAX_SIZE
from irc.ir.node import Block, Node, Use, Value, describe
from irc.ir.objects import EnumMember
from irc.ir.region_flow import callee, with_subgraphs
from irc.ir.schema import Schema
from irc.ir.tensor import Array, Tensor, WeightTable
from irc.ir.text.parser import parse_graph, parse_module
from irc.ir.text.printer import Opaque
from irc.ir.text.type_parser import parse_type
from irc.ir.types import INT, NONE, Dim, DType, ListType, OptionalType, Shape, TensorType, Type

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
