"""docs/reference/conformance.md from what ran."""

from __future__ import annotations

import platform
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

from benchmarks.conformance import means
from benchmarks.conformance.cases import CATEGORIES, RANDOM, REFUSED, Case
from benchmarks.conformance.means import Means

PACKAGES = ("onnx", "onnxruntime", "numpy", "ml_dtypes", "pillow", "google-re2")

HEAD = """# Conformance

<!-- Written by `python -m benchmarks.conformance`. -->

ONNX comes with a test suite for runtimes, `onnx.backend.test`: cases of one operator each, or of what an operator's
function body says (node), small models (simple), the architectures of real ones with constant weights (light), and
operators and modules that PyTorch exported (PyTorch-operator, PyTorch-converted). This page says how many of them irc
passes, with its default pipeline and with no passes at all, and how many ONNX's own reference implementation and ONNX
Runtime do. A case passes if every output has the expected shape, type and values, within the case's own tolerances.
Each contender runs in processes of its own: a case that ends its process, or takes minutes, fails.

{versions}.

`make conformance` runs them all again and writes this page. `make test-all` has all of irc's part
(`tests/test_onnx_backend.py`), and checks that this page says what it shows.
"""


DIFFERENCES = """\
Of what no case asks, irc and ONNX Runtime are known to differ in this:

- `auto_pad` `SAME_UPPER` and `SAME_LOWER` of windows smaller than their strides, where as many outputs as there must
  be need less than the input: irc pads by nothing, so that the first window begins at the first element. ONNX Runtime
  refuses to pool so, and lets convolutions begin and end inside the input, by padding of less than nothing.
- `auto_pad` `SAME_UPPER` and `SAME_LOWER` of pooling with dilations: irc pads for the dilated window, so that there are
  as many outputs as the specification says; ONNX Runtime for one that is not dilated. ConvTranspose with these, of
  windows smaller than their strides: as many outputs as inputs times strides; ONNX Runtime gives fewer, onnx.reference
  pads by less than nothing.
- Resize from version 19 on, by scales, with `align_corners`: the corners are those of a size that need not be whole, as
  the standard's own cases have it. ONNX Runtime and PyTorch round it first, so irc does for models that PyTorch has
  exported. `tf_crop_and_resize`: ONNX Runtime passes over the region where all scales are 1, and reads others otherwise
  along three axes.
- Cast of floats to integers of two and four bits cuts them off, as to other integers and for onnx.reference; ONNX
  Runtime rounds them. With `saturate=0`, numbers that would be rounded beyond the largest of float8e4m3fn and
  float8e5m2 are no number and infinite, as for onnx.reference; next to it, ONNX Runtime's are the largest one and no
  number. To float8e8m0, which has no sign, negative numbers are cast by their size, as for onnx.reference; for ONNX
  Runtime they are the least number.
- MaxUnpool with an output shape: indices are those of the tensor that was pooled, as for onnx.reference. ONNX Runtime
  counts them in the larger one.
- Attention with `is_causal` and a past: rows count from the end of the past, as for onnx.reference; not in ONNX Runtime
  where there is one row. Masks narrower than keys and past: broadcast in version 23; onnx.reference pads them, as
  version 24 says.
- TreeEnsembleClassifier of two classes that both have votes: the likelier one, as for onnx.reference; ONNX Runtime
  takes the second whenever that has votes. TreeEnsembleRegressor of several targets with base values: a target
  without votes has its base value; 0 in ONNX Runtime. The least and largest of no votes are 0 in both; not in
  onnx.reference.
- Pooling with a window larger than its input (with `ceil_mode`, by a stride or more): irc refuses it, as PyTorch does,
  for no output is left. ONNX Runtime gives an empty result, or refuses it.
- Slice backwards with an end of `INT_MAX`: irc clamps it to the last element, as the specification says, so nothing is
  taken. ONNX Runtime goes on to the first.
- TreeEnsembleClassifier, a class of which has no votes in a row: its score of 0 counts for irc, as for onnx.reference,
  so it is the likeliest if all others are negative. ONNX Runtime takes the best of the others; of two classes, it takes
  the votes of the first for votes of the second if that has none.
- Products of unsigned bytes with signed ones (MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv, QGemm,
  DynamicQuantizeMatMul, MatMulIntegerToFloat, QAttention): irc adds them exactly. On processors without VNNI, ONNX
  Runtime adds them in pairs with 16 bits, which saturate; so `--check` does not ask it there.
- Clip from version 11 on without a bound: irc keeps an infinity there, as onnx.reference does. ONNX Runtime makes it
  the largest number, as the specification says and irc does from version 6 to 10.
- Concat of operands whose other sizes differ: both take those of size 0 along the axis, such as the dummy of shape
  (1, 0, 0, 0) that a decoder is begun with. irc refuses others without elements; ONNX Runtime gives them places in the
  result, which it leaves as they are.
- Reshape to a computed shape, of a tensor that has no elements for two reasons, where one of the sizes given is 0 and
  would copy a size that is not: arithmetic on the result's shape (Shape, Size) says 0 in the default pipeline, which
  takes the size given for what was meant; the result itself is copied as the specification says. (Of a tensor that is
  empty for one reason, no such Reshape can run.) Heads that share keys are taken for rows of one product likewise: of
  no batch and no keys, that may have another shape, or be refused (IRC421).
- Sizes of one name in the shapes of inputs, which differ: irc refuses them. ONNX Runtime does not look.
- NaN among the elements: ReduceMax, ReduceMin, MaxPool, ArgMax, ArgMin and Hardmax find it, as NumPy does; of several
  in a window, MaxPool's indices name the last, as PyTorch's do. ONNX Runtime passes over it in some of them.
- Sums of int32 beyond its range wrap around, as in NumPy, in ReduceSum and ReduceL1; ONNX Runtime's end at its bounds.
  Products and Einsum of int64 are exact; ONNX Runtime's may lose low bits.
- NonZero of a scalar has the shape (0, n), as the specification says; ONNX Runtime's is (1, n).
- SplitToSequence with sizes ignores `keepdims`, as the specification says; ONNX Runtime drops the axis.
- OneHot of versions 9 and 10 gives nothing but the off value for negative indices; ONNX Runtime counts them from the
  end, as from version 11 on.
- StringSplit of the empty string by a delimiter: one empty part, as in onnx.reference; none in ONNX Runtime.
- Dropout's mask in inference, version 10: all true, as nothing is dropped; all false in ONNX Runtime.
- Regressors of one target (LinearRegressor, SVMRegressor, TreeEnsemble, TreeEnsembleRegressor): irc transforms their
  scores as `post_transform` says. ONNX Runtime leaves them as they are, but for PROBIT of others than SVMRegressor. Of
  TreeEnsemble with several targets, it takes LOGISTIC and SOFTMAX for each other; PROBIT's quantiles are approximations
  everywhere. `--check` does not ask it for any of these.
- ReduceMean over no elements: NaN, as sums are divided by 0; 0 in ONNX Runtime.
- Products over no elements: Gemm adds beta C nevertheless, and MatMul gives zeros; ONNX Runtime ignores beta, and gives
  what lies in memory.
"""


def versions() -> dict[str, str]:
    """Of Python and the packages that a result may depend on."""
    return {"Python": platform.python_version()} | {name: _version(name) for name in PACKAGES}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def write(
    installed: Mapping[str, str], cases: Sequence[Case], table: Mapping[str, Sequence[str]], how: Sequence[Means]
) -> str:
    """The page.

    Args:
        installed: name -> version.
        table: contender -> for each case "passes", "fails" or "ends the process".
        how: for each case by what irc computes it.
    """
    listed = ", ".join(f"{name} {number}" for name, number in installed.items())
    parts = [
        HEAD.format(versions=_wrapped(f"Versions: {listed}")),
        _totals(cases, table),
        _excluded(cases, table),
        _section("Known differences", DIFFERENCES.rstrip()),
        _by_means(cases, how),
        _by_reference(how),
        _failing(cases, table),
    ]
    return "\n".join(parts)


def _totals(cases: Sequence[Case], table: Mapping[str, Sequence[str]]) -> str:
    sizes = Counter(case.category for case in cases)
    rows: list[Sequence[object]] = [("cases", *(sizes[c] for c in CATEGORIES), len(cases))]
    for contender, outcomes in table.items():
        passed = Counter(c.category for c, outcome in zip(cases, outcomes, strict=True) if outcome == "passes")
        rows.append((contender, *(passed[c] for c in CATEGORIES), passed.total()))
    ended = ", ".join(f"{contender} {n}" for contender, o in table.items() if (n := o.count("ends the process")))
    text = f"\n\nCases that ended their process, or took too long: {ended}." if ended else ""
    return _section("Cases that pass", _grid(("", *CATEGORIES, "all"), rows) + text)


def _excluded(cases: Sequence[Case], table: Mapping[str, Sequence[str]]) -> str:
    text = (
        "The expected values of these cases are random draws, which no other implementation can repeat: "
        f"{_names(RANDOM)}. What irc draws for them is tested for its distribution instead "
        f"(`tests/test_onnx_backend.py`). irc refuses to train, with a clear error: {_names(REFUSED)}."
    )
    lines: list[str] = []
    for contender in ("irc", "irc, unoptimised"):
        left = [name for name in _failed(cases, table[contender]) if name not in RANDOM | REFUSED]
        what = f"does not pass {_names(left)}" if left else "passes every other case"
        lines.append(f"- {contender}: {what}.")
    return _section("What irc does not pass", _wrapped(text) + "\n\n" + "\n".join(lines))


def _by_means(cases: Sequence[Case], how: Sequence[Means]) -> str:
    rows: list[Sequence[object]] = []
    for by in (means.OWN, means.BODY, means.REFERENCE, means.REFUSED):
        counts = Counter(c.category for c, m in zip(cases, how, strict=True) if m.by == by)
        share = f"{counts['node'] / sum(c.category == 'node' for c in cases):.1%}"
        rows.append((by, *(counts[c] for c in CATEGORIES), counts.total(), share))
    text = (
        "irc has kernels of its own for most operators, replaces others by the function bodies that the standard "
        "defines them by (so they are optimised and fused with the rest), and leaves the rest to onnx.reference. A "
        "case counts for the reference if any of its nodes needs it, and for function bodies if irc replaces one."
    )
    return _section("By what means", f"{_wrapped(text)}\n\n{_grid(('', *CATEGORIES, 'all', 'of node'), rows)}")


def _by_reference(how: Sequence[Means]) -> str:
    counts = Counter(kind for m in how for kind in m.reference)
    rows = [(f"`{kind.removeprefix('onnx::')}`", counts[kind]) for kind in means.by_reference()]
    text = (
        "Operators of the installed onnx that irc has neither a kernel nor a function body for. (The "
        "reference has none for Gradient either.)"
    )
    table = _grid(("operator", "cases that use it"), rows)
    return _section("Left to onnx.reference", f"{_wrapped(text)}\n\n{table}")


def _failing(cases: Sequence[Case], table: Mapping[str, Sequence[str]]) -> str:
    found: list[str] = []
    for contender in ("onnx.reference", "ONNX Runtime"):
        names = [name for name in _failed(cases, table[contender]) if name not in RANDOM]
        summary = f"<summary>{contender}: {len(names)} cases</summary>"
        found.append(f"<details>{summary}\n\n{_wrapped(_names(names))}\n\n</details>")
    return _section("What the others do not pass, random draws aside", "\n\n".join(found))


def _failed(cases: Sequence[Case], outcomes: Sequence[str]) -> list[str]:
    return [case.name for case, outcome in zip(cases, outcomes, strict=True) if outcome != "passes"]


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n{text}\n"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _grid(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
