"""What a run of a program exercised."""

from collections.abc import Mapping

from irc.alias import AliasDb
from irc.ir import Block, Graph, Module, Node
from irc.ir.types import UnionType
from tests.programs.interpreter import Env
from tests.programs.soundness import Soundness

LOOPS = ("prim::Loop", "onnx::Loop")
OPTIONALS = ("aten::get", "onnx::Optional", "prim::unchecked_unwrap_optional", "onnx::OptionalGetElement")
MOST_STEPS = 1500
MOST_ELEMENTS = 1000


class TooMuch(Exception):
    """The program runs very long, or makes a very long list."""


class Watcher(Soundness):
    """Checks the analysis, and counts in ``seen`` what there was to check."""

    def __init__(self, module: Module, dbs: Mapping[Graph, AliasDb] | None = None) -> None:
        super().__init__(module, dbs)
        self._iterations: list[int] = []
        self._steps = 0

    def before(self, node: Node, env: Env) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise TooMuch
        if node.kind in LOOPS:
            self._iterations.append(0)
        super().before(node, env)

    def entered(self, block: Block, env: Env) -> None:
        if block.node is not None and block.node.kind in LOOPS:
            self._iterations[-1] += 1
        super().entered(block, env)

    def after(self, node: Node, env: Env) -> None:
        if any(isinstance(env[v], list) and len(env[v]) > MOST_ELEMENTS for v in node.outputs):
            raise TooMuch
        self.seen["steps"] += 1
        self.seen["unions"] += any(isinstance(v.type, UnionType) for v in node.outputs)
        if node.kind in LOOPS:
            iterations = self._iterations.pop()
            self.seen[
                "loops without an iteration"
                if not iterations
                else "loops of one iteration"
                if iterations == 1
                else "longer loops"
            ] += 1
        elif node.kind == "prim::If":
            self.seen["branches"] += 1
        elif node.kind == "prim::CallFunction":
            self.seen["calls"] += 1
        elif node.kind in OPTIONALS:
            self.seen["optionals"] += 1
        super().after(node, env)
