"""What the specification requires of attributes and operands beyond their types is checked when a model is compiled."""

import re

import pytest

import irc
from irc.errors import Error
from irc.ir import parse_module
from irc.ops import records

INPUTS = (
    "%x : Float(2, 6, 4, 4), %m : Float(4, 6), %v : Float(6), %f : Float(), %l : Float(*, *)[], %q : Float(2, 4, 6), "
    "%p : Float(6, 4, 4), %h : Float(2, 4, 4), %i : Long(2, 4, 4), %s : Long(1), %n : Long(), %j : Long(2, 6, 4, 4)"
)

WRONG: list[tuple[str, str, str]] = [
    ("AffineGrid(%q, %i)", "", "size must have 1 dimensions, not 3"),
    ("Attention[q_num_heads=0, kv_num_heads=2](%q, %q, %q)", "", "q_num_heads must be positive, not 0"),
    ("Attention[q_num_heads=3, kv_num_heads=2](%q, %q, %q)", "", "q_num_heads 3 must be a multiple"),
    ("Attention[q_num_heads=2, kv_num_heads=2](%x, %x, %x)", "", "q_num_heads is for operands of 3 dimensions"),
    ("Attention[qk_matmul_output_mode=4](%x, %x, %x)", "", "must be 0 to 3, not 4"),
    ("Attention[left_window_size=-2](%x, %x, %x)", "", "must be -1 or more, not -2"),
    ("BatchNormalization[training_mode=2](%x, %v, %v, %v, %v)", "", "training_mode must be 0 or 1, not 2"),
    ("BatchNormalization(%x, %v, %v, %v, %m)", "", "the variance must have 1 dimensions, not 2"),
    ("BatchNormalization(%q, %v, %v, %v, %v)", "", "scale has 6 elements for 4 channels"),
    ("BatchNormalization[since_version=6](%x, %p, %v, %v, %v)", "", "scale must have 1 dimensions, not 3"),
    (
        "BatchNormalization[since_version=6, spatial=0](%x, %m, %v, %v, %v)",
        "",
        "scale must have 1 or 3 dimensions, not 2",
    ),
    (
        "BatchNormalization[since_version=6, spatial=0](%q, %v, %m, %m, %m)",
        "",
        "scale has 6 elements along an axis for 4 of",
    ),
    (
        "BatchNormalization[since_version=7, spatial=0](%x, %p, %p, %p, %v)",
        "",
        "the variance must have 3 dimensions, not 1",
    ),
    (
        "BatchNormalization[since_version=7, spatial=0](%x, %p, %h, %p, %p)",
        "",
        "B has 2 elements along an axis for 6 of the input",
    ),
    ("BlackmanWindow(%k)", "0", "size must be 1 or more, not 0"),
    ("HammingWindow(%s)", "", "size must have 0 dimensions, not 1"),
    ("HannWindow(%k)", "-3", "size must be 1 or more, not -3"),
    ("CausalConvWithState(%q, %q, %m)", "", "bias must have 1 dimensions, not 2"),
    ("CenterCropPad[axes=[1, -3]](%x, %k)", "[4, 4]", "axis 1 is given twice"),
    ("CenterCropPad[axes=[2, 3]](%x, %k)", "[4]", "shape has 1 elements for 2 axes"),
    ("Col2Im[strides=[0, 1]](%q, %k, %k)", "[2, 2]", "strides must be positive"),
    ("Col2Im[dilations=[1]](%q, %k, %k)", "[2, 2]", "dilations must have 2 entries, has 1"),
    ("Col2Im(%q, %k, %k)", "[0, 2]", "block_shape must be 1 or more, not 0"),
    ("ConcatFromSequence[axis=2](%l)", "", "axis 2 is out of range for rank 2"),
    ("ConcatFromSequence[axis=-4, new_axis=1](%l)", "", "axis -4 is out of range for rank 3"),
    ("ConvTranspose[group=0](%x, %x)", "", "group must be positive, not 0"),
    ("ConvTranspose[group=4](%x, %x)", "", "6 channels cannot be split into 4 groups"),
    ("ConvTranspose[output_padding=[-1, 0]](%x, %x)", "", "output_padding must be 0 or more"),
    ("ConvTranspose[output_shape=[2, 6, 8, 8]](%x, %x)", "", "output_shape has 4 numbers for 2 dimensions"),
    ("CumProd[reverse=2](%m, %k)", "0", "reverse must be 0 or 1, not 2"),
    ("CumSum(%m, %k)", "2", "axis 2 is out of range for rank 2"),
    ("CumSum(%m, %k)", "4294967297", "axis 4294967297 is out of range for rank 2"),
    ("CumSum(%m, %k)", "[0, 1]", "the axis must have 1 element, not 2"),
    ("DFT(%q, %n, %k)", "-1", "axis -1 is that of real and imaginary parts"),
    ("Dropout(%m, %v)", "", "ratio must have 0 dimensions, not 1"),
    ("GRU[hidden_size=0](%q, %q, %q)", "", "hidden_size must be positive, not 0"),
    ("GroupNormalization[num_groups=2](%x, %m, %v)", "", "scale must have 1 dimensions, not 2"),
    ("LSTM[hidden_size=2, layout=3](%q, %q, %q)", "", "layout must be 0 or 1, not 3"),
    ("LabelEncoder", "", "exactly one of keys_tensor, keys_strings, keys_int64s, keys_floats must be given"),
    ("LinearAttention[q_num_heads=-1, kv_num_heads=1](%q, %q, %q)", "", "q_num_heads must be positive, not -1"),
    ("MaxPool[kernel_shape=[2, 2], storage_order=2](%x)", "", "storage_order must be 0 or 1, not 2"),
    ("MaxUnpool[kernel_shape=[2, 2], strides=[2]](%x, %j)", "", "strides must have 2 entries, has 1"),
    ("MaxUnpool[kernel_shape=[2, 2]](%x, %j, %k)", "[2, 6, 8]", "output_shape has 3 elements for 4 dimensions"),
    ("NegativeLogLikelihoodLoss(%x, %s)", "", "the classes must have 3 dimensions, not 1"),
    ("NegativeLogLikelihoodLoss(%q, %i)", "", "the classes must have 2 dimensions, not 3"),
    ("NonMaxSuppression[center_point_box=2](%q, %q)", "", "center_point_box must be 0 or 1, not 2"),
    ("OneHot(%s, %k, %v)", "-1", "depth must be 0 or more, not -1"),
    ("OneHot(%s, %k, %v)", "2", "values must have 2 elements, not 6"),
    ("Pad(%m, %i)", "", "pads must have 1 dimensions, not 3"),
    ("Pad(%m, %z, %f, %k)", "[0, -2]", "axis 0 is given twice"),
    ("RNN[hidden_size=-2](%q, %q, %q)", "", "hidden_size must be positive, not -2"),
    ("Resize(%x, %no, %r, %k)", "[2, 6, 8, 8]", "sizes and scales are given, but only one of them may be"),
    ("Resize(%x)", "", "neither sizes nor scales are given"),
    ("Resize[axes=[2, -2]](%x, %no, %no, %k)", "[8, 8]", "axis 2 is given twice"),
    ("Resize(%x, %no, %no, %k)", "[8, 8]", "sizes has 2 elements for 4 axes"),
    ("Resize[antialias=2](%x, %no, %no, %k)", "[2, 6, 8, 8]", "antialias must be 0 or 1, not 2"),
    ("ReverseSequence(%m, %i)", "", "sequence_lens must have 1 dimensions, not 3"),
    ("ReverseSequence(%m, %k)", "[1, 2]", "sequence_lens has 2 elements for 6 sequences"),
    ("RotaryEmbedding[num_heads=-1](%x, %m, %m)", "", "num_heads must be 0 or more, not -1"),
    ("SoftmaxCrossEntropyLoss(%q, %i)", "", "the classes must have 2 dimensions, not 3"),
    ("SplitToSequence(%m, %k)", "0", "parts must have 1 or more, not 0"),
    ("SplitToSequence[axis=1](%m, %k)", "[2, 2]", "parts [2, 2] do not add up to 6"),
    ("SplitToSequence[axis=2](%m, %k)", "1", "axis 2 is out of range for rank 2"),
    ("TensorScatter[axis=4](%x, %x)", "", "axis 4 is out of range for rank 4"),
    ("TensorScatter(%x, %x, %i)", "", "write_indices must have 1 dimensions, not 3"),
    ("Tile(%m, %k)", "[2, -1]", "repeats must be 0 or more, not -1"),
    ("TopK(%m, %k)", "[7]", "K is 7, but there are 6 elements along the axis"),
    ("TopK(%m, %k)", "[1, 1]", "K must have 1 element, not 2"),
]


RESULTS = {
    "CausalConvWithState": "%y : Tensor, %state : Tensor",
    "LinearAttention": "%y : Tensor, %state : Tensor",
    "SplitToSequence": "%y : Float(*)[]",
    "TopK": "%y : Tensor, %at : Tensor",
}


def text_of(call: str, constant: str) -> str:
    """A graph with one node, of which ``%k`` is a constant of integers."""
    name = call.partition("(")[0].partition("[")[0]
    if name == "LabelEncoder":
        call = 'ai.onnx.ml::LabelEncoder[keys_int64s=[1], keys_strings=["a"], values_floats=[1.]](%n)'
    is_list = constant.startswith("[")
    shape, value = (constant.count(",") + 1, f"tensor({constant})") if is_list else ("", f"{{{constant or 1}}}")
    return f"""graph({INPUTS}):
  %k : Long({shape}) = prim::Constant[value={value}]()
  %z : Long(4) = prim::Constant[value=splat(0)]()
  %r : Float(4) = prim::Constant[value=splat(2.)]()
  %no : NoneType = prim::Constant()
  {RESULTS.get(name, "%y : Tensor")} = {"" if "::" in call else "onnx::"}{call}
  return (%y)
"""


@pytest.mark.parametrize(("call", "constant", "message"), WRONG)
def test_what_breaks_a_requirement_is_refused(call: str, constant: str, message: str) -> None:
    module = parse_module(text_of(call, constant))
    with pytest.raises(Error, match=re.escape(message)) as caught:
        irc.compile(module)
    assert caught.value.code == "IRC310"
    assert str(caught.value.where).startswith("%y")


def test_every_operator_with_requirements_is_tested() -> None:
    tested = {re.match(r"\w+", call).group() for call, *_ in WRONG}
    assert {each.name for each in records() if each.requires} == tested


def test_what_is_not_known_is_left_to_the_run() -> None:
    text = text_of("CumSum(%m, %n)", "")
    irc.compile(parse_module(text))
    irc.compile(parse_module(text_of("Resize(%x, %no, %no, %s)", "").replace("%s : Long(1)", "%s : Long(*)")))
