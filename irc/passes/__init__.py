"""Passes: the protocol, the registry, pipelines, the manager, instruments, and one pass a file."""

from irc.ops.shape_rules import shape_rule
from irc.passes.base import Pass, PassContext
from irc.passes.canonicalize import Canonicalize
from irc.passes.constant_fold import ConstantFold
from irc.passes.conv_bn_fold import ConvBnFold
from irc.passes.dce import Dce
from irc.passes.fix_sizes import FixSizes
from irc.passes.freeze import Freeze
from irc.passes.in_place import InPlace
from irc.passes.inline import Inline
from irc.passes.instruments import INSTRUMENTS, Instrument, create_instruments
from irc.passes.kv_cache import Growable
from irc.passes.manager import PassManager, PassReport
from irc.passes.merging import ConstantPool, Cse
from irc.passes.nested_concats import NestConcats
from irc.passes.registry import Pipeline, Repeat, create, names, parse_pipeline, print_pass, print_pipeline, register
from irc.passes.remove_mutation import RemoveMutation
from irc.passes.reorder import Reorder
from irc.passes.rewriter import Rewriter
from irc.passes.shapes import ShapeInference
from irc.support.remarks import PassRun, Remark

__all__ = [
    "INSTRUMENTS",
    "Canonicalize",
    "ConstantFold",
    "ConstantPool",
    "ConvBnFold",
    "Cse",
    "Dce",
    "FixSizes",
    "Freeze",
    "Growable",
    "InPlace",
    "Inline",
    "Instrument",
    "NestConcats",
    "Pass",
    "PassContext",
    "PassManager",
    "PassReport",
    "PassRun",
    "Pipeline",
    "Remark",
    "RemoveMutation",
    "Reorder",
    "Repeat",
    "Rewriter",
    "ShapeInference",
    "create",
    "create_instruments",
    "names",
    "parse_pipeline",
    "print_pass",
    "print_pipeline",
    "register",
    "shape_rule",
]
