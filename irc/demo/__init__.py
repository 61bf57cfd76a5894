"""Real models for demonstrations, tests and benchmarks: nothing to download.

The onnx package bundles nine image classifiers (``light_*.onnx``), stripped of
their weights: each is ``ConstantOfShape`` 0.02, so that the output is the same
for every input. `randomize_weights` makes them real functions again.

``python -m irc.demo`` compiles one of them and runs it.
"""

from irc.support.lazy import lazy_getattr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irc.demo.models import BUNDLED, bundled_model, randomize_weights, seeded_inputs

__all__ = ["BUNDLED", "bundled_model", "randomize_weights", "seeded_inputs"]

__getattr__, __dir__ = lazy_getattr(__name__, {**dict.fromkeys(__all__, "irc.demo.models"), "models": ""})
