"""Backends: compile fusion groups and planned steps, where that pays; NumPy runs the rest.

What may be fused, and what may be written in place, is decided before, by passes, and is the same for all backends. A
backend says what pays. Whatever it declines, the interpreter runs, so a backend may know as little as it likes.

Invariants that a backend keeps:

- A kernel gives the interpreter's results, within the bounds that the backend states, for operands of the types that
  it was compiled for, however they lie in memory.
- It writes to nothing but its results. Operands may be read-only, and may overlap each other. ``out`` overlaps no
  operand but one that the backend says may be written over, whose memory it then is.
- It keeps no operand, and nothing that it returns shares memory with an operand.
- It may be called from several threads at once.
- For the same group and types, the backend decides the same each time that it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from irc.errors import Error, did_you_mean, nonsense
from irc.ir import Graph, Node, Tensor
from irc.runtime.array_memory import ArrayType
from irc.runtime.execution import Frame, Slots
from irc.runtime.kernels.registry import Kernel
from irc.runtime.values import Array, is_array
from irc.support.plugins import BACKENDS, entry_points, load

if TYPE_CHECKING:
    from irc.runtime.control_flow import Iterate
    from irc.runtime.memory_plan import FormRecorder
    from irc.runtime.plan import Plan

NUMPY = "numpy"
"""The interpreter alone."""

AUTO = "auto"
"""The fastest backend that is installed."""

OWN = {"native": ("irc.native.backend", "Native", "llvmlite")}
"""irc's own backends: name -> module, class, and the package that it needs. The first that is there is `AUTO`."""


class Declined(NamedTuple):
    """Why a backend leaves something to the interpreter."""

    reason: str


class Unsupported(Exception):
    """Raised by a kernel, before it writes, for operands of the right types that it cannot compute."""


class PlannedOperand(NamedTuple):
    """An operand of a planned step.

    Attributes:
        slot: where in the frame it is.
        type: its element type and shape. Sizes that differ from run to run are `irc.runtime.array_memory.ANY`.
        strides: how it lies in memory, as far as is known; None: in C order. Strides that differ are `ANY_STRIDE`.
        constant: the array itself, if it is the same in all runs, and never changes.
    """

    slot: int
    type: ArrayType
    strides: tuple[int, ...] | None = None
    constant: Array | None = None


class PlannedStep(NamedTuple):
    """A step of a run in planned memory that calls one kernel.

    Of an ``irc::append_`` there is no result, and the operands are others: an array that has room for ``other`` behind
    ``self`` already, and ``other``, which is to be copied there.

    Attributes:
        node: the operator, or the fusion group.
        operands: its operands; None for one that is absent.
        outs: where in the frame the arrays for the results are, in C order.
    """

    node: Node
    operands: tuple[PlannedOperand | None, ...]
    outs: Slots


class CompiledSteps(NamedTuple):
    """What a backend makes of consecutive steps.

    Attributes:
        steps: how many they are.
        function: does what they do, in a frame, or refuses its arrays, and returns 0, before it writes anything. None:
            they run one by one.
    """

    steps: int
    function: Callable[[Frame], int] | None


class Backend:
    """A base class that declines everything.

    A subclass is made once for each model, without arguments.

    Attributes:
        name: what it is called.
        checks: whether its kernels of groups look at their operands, and return `NotImplemented` if these have other
            types than they were compiled for, before they write anything: then a run need not look kernels up.
    """

    name: ClassVar[str] = NUMPY
    checks: ClassVar[bool] = False

    def refuses(self, group: Graph) -> Declined | None:
        """Why ``group`` is declined whatever the types of its operands; None if these decide.

        Asked once for each group, when a model is compiled or loaded. What is declined here runs as if nothing had been
        fused; what `compile_group` declines costs about a microsecond a run.
        """
        return Declined(f"the backend {self.name} compiles no groups")

    def compile_group(self, group: Graph, operands: tuple[ArrayType, ...]) -> Kernel | Declined:
        """A kernel that computes ``group`` for operands of these types.

        Called in the first run in which the operands have these types. A kernel takes one array an input of the group.
        It returns the result, or, of several results, a tuple. It takes ``out=``: None, or an array of the result's
        type and shape, in C order, in which the result is made; of several results, a list of such. It may raise
        `Unsupported`: the members then run.
        """
        return Declined(f"the backend {self.name} compiles no groups")

    def overwrites(self, group: Graph, operands: tuple[ArrayType, ...]) -> Sequence[tuple[int, int]]:
        """Pairs (result, operand) of the kernel for ``group``: this result may be written over that operand.

        Asked once for each kernel that `compile_group` has given. Result and operand have the same type and shape. A
        result is written over an operand only if both lie in C order and nothing else reads that memory, then or later;
        any number of results may be, each over another operand.
        """
        return ()

    def bind(self, node: Node, kernel: Kernel) -> Kernel:
        """The kernel that runs ``node``: the interpreter's ``kernel``, or a faster one that may call it.

        Asked once for each operator of a model that is not a group, when its graph is lowered. The kernel has to do for
        operands of all types, and takes ``out=`` if ``kernel`` does.
        """
        return kernel

    def compile_steps(self, steps: Sequence[PlannedStep]) -> Sequence[CompiledSteps]:
        """What is made of consecutive ``steps``, in order; those that are left over at the end run one by one.

        Called once for each kind of run whose memory is planned. Operands that no step makes may have other types, and
        lie otherwise, than is said. Where a function refuses them, and in runs that are followed step by step, or
        limited, the steps run one by one.
        """
        return ()

    def compile_loop(self, loop: Node, plan: Plan, known: FormRecorder) -> Iterate | None:
        """What runs all iterations of ``loop`` at once in runs like the recorded one; None: nothing does.

        Asked once for each loop of the graph that runs at most once, in each kind of run whose memory is planned.

        Args:
            loop: in the top block or in a branch.
            plan: of the graph.
            known: what was recorded.
        """
        return None

    def packed(self, weights: Mapping[str, Array]) -> Mapping[str, Array]:
        """What runs have made of ``weights``, to be saved with them, by texts that `use_packed` reads."""
        return {}

    def use_packed(self, weights: Mapping[str, Tensor], packed: Mapping[str, Tensor]) -> object:
        """Use what `packed` gave for these weights, which a file holds, as long as what this returns is kept.

        Nothing is certain of it but that it is in the file.

        Raises:
            Error: IRC513 if a text is none that `packed` gives.
        """
        return None


def find_backend(name: str | Backend) -> Backend | None:
    """The backend called ``name``, or given as an object; None for the interpreter alone.

    Raises:
        Error: IRC327, there is no such backend; IRC304, it cannot be loaded or is no `Backend`.
    """
    if isinstance(name, Backend):
        return name
    if name == AUTO:
        name = next((own for own, (_, _, needed) in OWN.items() if find_spec(needed) is not None), NUMPY)
    if name == NUMPY:
        return None
    if name in OWN:
        module, own, _ = OWN[name]
        return getattr(import_module(module), own)()
    found = {entry.name: entry for entry in entry_points(BACKENDS)}
    if name not in found:
        known = [AUTO, NUMPY, *OWN, *found]
        hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
        raise Error("IRC327", f"no backend is called {name!r}; {hint}")
    what = f"the backend {name!r}"
    made = load(found[name], what)
    try:
        backend = made()
    except Exception as error:
        raise Error("IRC304", f"{what} cannot be made: {nonsense(error)}", found[name].value) from error
    if not isinstance(backend, Backend):
        raise Error("IRC304", f"{what} is not an irc.runtime.backends.Backend", found[name].value)
    return backend


MOST_KERNELS = 64
"""Kernels kept for one group or operator, one a tuple of operand types; beyond that, the older half is dropped."""

K = TypeVar("K")

KernelKey = tuple[ArrayType | None, ...]
"""The types of operands; None for one that is not an array."""


class KernelsByType(Generic[K]):
    """The compiled kernels of one group or operator, by operand types. Subclasses define `compile`."""

    def __init__(self) -> None:
        self._kernels: dict[KernelKey, K | None] = {}

    def kernel(self, operands: Sequence[Any]) -> K | None:
        """The kernel for the types of ``operands``, compiled on first use; None if there is none."""
        key: Any = tuple([(x.dtype, x.shape) if is_array(x) else None for x in operands])
        try:
            return self._kernels[key]
        except KeyError:
            return self._compiled(key)

    def _compiled(self, key: KernelKey) -> K | None:
        kernel = self.compile(tuple([None if each is None else ArrayType(*each) for each in key]))
        kernels = self._kernels
        if len(kernels) >= MOST_KERNELS:
            kernels = dict(list(kernels.items())[MOST_KERNELS // 2 :])
        self._kernels = {**kernels, key: kernel}  # a new dict, not a change: another thread may be reading
        return kernel

    def compile(self, key: KernelKey) -> K | None:
        """A kernel for operands of these types; None if the backend has none."""
        raise NotImplementedError


def suits_nothing(*operands: Any, out: Any = None) -> Any:
    """A kernel that declines all operands."""
    return NotImplemented


class GroupKernel(NamedTuple):
    """A kernel of a group, and which results it may make over which operands (`Backend.overwrites`)."""

    kernel: Kernel
    over: tuple[tuple[int, int], ...]


class CompiledGroup(KernelsByType[GroupKernel]):
    """The kernels that a backend has compiled for one group, by the types of operands.

    Args:
        backend: what compiles.
        group: the group.
        tell: is told each reason for which the backend declines, once.
    """

    def __init__(self, backend: Backend, group: Graph, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._backend = backend
        self._group = group
        self.checks = backend.checks
        self._tell = tell
        self._reasons: set[str] = set()

    def over(self, result: int, operands: Sequence[ArrayType | None]) -> list[int]:
        """The positions of operands that the kernel for these types may write the given result over."""
        key: Any = tuple(operands)
        found = self._kernels.get(key)
        return [operand for made, operand in found.over if made == result] if found is not None else []

    def compile(self, key: KernelKey) -> GroupKernel | None:
        types = tuple([each for each in key if each is not None])
        if len(types) < len(key):
            self.decline("an operand is not an array")
            return None
        made = self._backend.compile_group(self._group, types)
        if isinstance(made, Declined):
            self.decline(made.reason)
            return None
        return GroupKernel(made, tuple(self._backend.overwrites(self._group, types)))

    def decline(self, reason: str) -> None:
        """Note why the members run instead of a kernel."""
        if reason not in self._reasons:
            self._reasons.add(reason)
            self._tell(reason)
