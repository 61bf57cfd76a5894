"""The adapter over onnx.reference: what it refuses, what it copies, how it says what went wrong."""

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import onnx
import pytest

from irc.errors import Error
from irc.runtime import kernels
from irc.runtime.kernels import fallback
from tests.arrays import ramp
from tests.kernels import helpers
from tests.kernels.helpers import NodeStandIn


def node(kind: str, inputs: int, outputs: int = 1, version: int | None = None, **attrs: Any) -> Any:
    attributes = {k: helpers._attribute(v) for k, v in attrs.items()}
    return NodeStandIn(kind, version, attributes, [None] * inputs, [None] * outputs)


# -- what it serves -------------------------------------------------------------------


def test_means():
    assert kernels.means(node("onnx::Relu", 1)) == "own"
    assert kernels.means(node("onnx::RegexFullMatch", 1, pattern="a")) == "own"
    assert kernels.means(node("onnx::NoSuchOperator", 1)) is None
    assert kernels.means(node("acme::Det", 1)) is None


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (node("onnx::Loop", 2), "control flow"),
        (node("onnx::If", 1), "control flow"),
        (node("onnx::SequenceMap", 1), "control flow"),
        (node("acme::Det", 1), "no kernel"),
        (node("onnx::NoSuchOperator", 1), "NoSuchOperator"),
        (node("ai.onnx.preview.training::Gradient", 1), "Gradient"),
    ],
    ids=lambda v: v if isinstance(v, str) else v.kind,
)
def test_refusals(refused, reason):
    assert not fallback.serves(refused)
    with pytest.raises(Error, match=reason) as error:
        kernels.bind(refused)
    assert error.value.code == "IRC321"
    assert refused.kind in error.value.message


def test_nodes_with_blocks_are_refused():
    given = node("onnx::Det", 1)
    given.blocks = [object()]
    assert fallback.refusal(given) == "control flow has no kernel: in IR text it is prim::If, or prim::Loop"


def test_every_operator_is_served_or_refused():
    """No schema of any version makes the adapter fall over; what has no kernel at all is little, and known."""
    unknown = set()
    for schema in onnx.defs.get_all_schemas_with_history():
        attrs = {
            name: {"INT": 1, "FLOAT": 1.0, "STRING": "a", "INTS": [1], "FLOATS": [1.0], "STRINGS": ["a"]}.get(
                a.type.name
            )
            for name, a in schema.attributes.items()
            if a.required
        }
        given = node(
            helpers.kind_of(schema.name, schema.domain),
            schema.min_input,
            max(1, schema.min_output),
            schema.since_version,
            **{k: v for k, v in attrs.items() if v is not None},
        )
        if not schema.deprecated and kernels.means(given) is None:
            unknown.add(schema.name)
    control = {"If", "Loop", "Scan", "SequenceMap"}
    assert unknown == control | {"Gradient"}


# -- what it returns --------------------------------------------------------------------

SHARING = [
    (node("onnx::Identity", 1), [ramp(2, 3)]),
    (node("onnx::Reshape", 2), [ramp(2, 3), np.array([3, 2])]),
    (node("onnx::Clip", 1), [ramp(3)]),
    (node("onnx::Einsum", 1, equation="ij->ji"), [ramp(2, 3)]),
    (node("onnx::Dropout", 1, 2), [ramp(3)]),
    (node("onnx::SequenceInsert", 2), [[ramp(2)], ramp(3)]),
    (node("onnx::Split", 1, 2, num_outputs=2), [ramp(4)]),
    (node("onnx::BitCast", 1, to=6), [ramp(4)]),
]


@pytest.mark.parametrize(("given", "inputs"), SHARING, ids=[n.kind for n, _ in SHARING])
def test_results_share_with_nothing(given, inputs):
    """These operators of the reference return their inputs, or views of them."""
    found = fallback.bind(given)(*inputs)
    results = list(helpers._arrays(found if isinstance(found, (tuple, list)) else [found]))
    for i, result in enumerate(results):
        assert result.flags.c_contiguous
        for other in [*helpers._arrays(inputs), *results[:i]]:
            assert not np.shares_memory(result, other)


def test_results_have_the_stated_type():
    det = fallback.bind(node("onnx::Det", 1))(np.eye(2, dtype=np.float32) * 3)
    assert (type(det), det.dtype, det.shape) == (np.ndarray, np.float32, ())
    assert det == 9
    text = fallback.bind(node("onnx::StringConcat", 2))(np.array(["a"], object), np.array(["b"], object))
    assert (text.dtype, text.tolist()) == (object, ["ab"])
    parts, counts = fallback.bind(node("onnx::StringSplit", 1, 2))(np.array(["a b", "c"], object))
    assert (parts.dtype, parts.tolist()) == (object, [["a", "b"], ["c", ""]])
    assert (counts.dtype, counts.tolist()) == (np.int64, [2, 1])


def test_absent_inputs():
    loss = fallback.bind(node("onnx::NegativeLogLikelihoodLoss", 3))
    x, target = np.log(np.full((2, 4), 0.25, np.float32)), np.array([0, 3])
    np.testing.assert_allclose(loss(x, target, None), np.log(4), rtol=1e-6)


def test_defaults_are_those_of_the_version():
    """Selu's alpha and gamma were given with fewer digits in version 1."""
    x = np.array([-2.0, 3.0], np.float32)
    for version in (1, 6):
        found = fallback.bind(node("onnx::Selu", 1, version=version))(x)
        np.testing.assert_allclose(found, helpers.run_kernel("Selu", [x], {}, version)[0], rtol=1e-7)


def test_functions_that_depend_on_types():
    """Their bodies are made when a run tells the types of the inputs; one kernel serves several."""
    schema = onnx.defs.get_schema("SoftmaxCrossEntropyLoss")
    assert schema.has_context_dependent_function
    for dtype in (np.float32, np.float16):
        kernel = fallback.bind(node("onnx::RotaryEmbedding", 3, version=23, interleaved=0))
        x = np.ones((1, 2, 3, 4), dtype)
        found = kernel(x, np.ones((1, 3, 2), dtype), np.zeros((1, 3, 2), dtype))
        np.testing.assert_array_equal(found, x)
        assert found.dtype == dtype


def test_bad_values():
    with pytest.raises(Error, match=r"^IRC404: .*Det"):
        fallback.bind(node("onnx::Det", 1))(ramp(2, 3))


def test_where_the_reference_does_not_say_why_the_statement_does():
    with pytest.raises(Error, match=r"^IRC404: .*cannot compute Attention: AssertionError: assert len\(Q.shape\)"):
        fallback.bind(node("onnx::Attention", 3))(ramp(2), ramp(1, 2), ramp(2))


def test_what_interrupts_it_says_nothing_of_the_operator():
    """A signal handler's exception is its caller's; onnx's own are not."""

    class ClientGoneError(Exception):
        pass

    class Interrupted:
        def run(self, *_: Any) -> Any:
            raise ClientGoneError

    kernel, x = fallback.bind(node("onnx::Det", 1)), ramp(3, 3)
    expected = kernel(x)
    (key,) = kernel.evaluators
    plain, kernel.evaluators[key] = kernel.evaluators[key], Interrupted()
    with pytest.raises(ClientGoneError):
        kernel(x)
    kernel.evaluators[key] = plain
    np.testing.assert_array_equal(kernel(x), expected)


def test_several_threads():
    kernel = fallback.bind(node("onnx::Det", 1))
    found: dict[int, float] = {}

    def work(i: int) -> None:
        for _ in range(20):
            found[i] = float(kernel(np.eye(3, dtype=np.float32) * i))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {i: i**3 for i in range(4)}


def test_importing_the_kernels_imports_no_onnx():
    code = "import sys, irc.runtime.kernels; print('onnx' in sys.modules, 'ml_dtypes' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]
