"""Compile a real model, compare it with an oracle, and write it for this runtime and for others.

SqueezeNet comes with the onnx package, without its weights; irc gives it seeded random ones.

Prints::

    Conv 26 -> 26, Dropout 1 -> 0
    agrees with ONNX Runtime ...
    results are equal
"""

import tempfile
from pathlib import Path

import numpy as np

import irc
from irc.demo import bundled_model, randomize_weights

model = irc.compile(randomize_weights(bundled_model("squeezenet"), seed=0), check=True)
report = model.report
kinds = ("onnx::Conv", "onnx::Dropout")
changes = (
    f"{k.removeprefix('onnx::')} {report.operators_before[k]} -> {report.operators_after.get(k, 0)}" for k in kinds
)
print(", ".join(changes))
print(next(note for note in report.notes if note.startswith("agrees")))

with tempfile.TemporaryDirectory() as folder:
    model.save(Path(folder) / "squeezenet.irc")
    irc.export(model, Path(folder) / "squeezenet.onnx")
    image = np.random.default_rng(0).normal(size=(1, 3, 224, 224)).astype(np.float32)
    (expected,) = model.run({"data_0": image}).values()
    (loaded,) = irc.load(Path(folder) / "squeezenet.irc").run({"data_0": image}).values()
    (exported,) = irc.compile(Path(folder) / "squeezenet.onnx").run({"data_0": image}).values()
    assert np.array_equal(expected, loaded) and np.allclose(expected, exported, rtol=1e-5)
    print("results are equal")
