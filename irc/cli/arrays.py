"""Arrays in and out: inputs from .npy files, outputs to .npz files and to lines for people."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.cli.output import say
from irc.errors import Error, cannot, suggestion
from irc.ir.tensor import is_text
from irc.ir.types import ListType, OptionalType, PrimType, TupleType, Type
from irc.runtime.arguments import Argument
from irc.runtime.model import CompiledModel
from irc.runtime.values import Array, describe, is_array, is_mapping, is_sequence
from irc.support.files import open_regular
from irc.tools.archives import LEVELS, as_entries, read_archive
from irc.tools.random_inputs import draw
from irc.tools.random_inputs.fitting import Fitting, make_or_explain

if TYPE_CHECKING:
    from argparse import Namespace

    from irc.cli.results import OutputValue
    from irc.runtime.limits import Limits


def read_inputs(model: CompiledModel, given: Sequence[str]) -> dict[str, Any]:
    """The values of inputs in the files ``given`` as ``NAME=FILE`` or ``FILE.npz``, by input name.

    An input that is a list or tuple of tensors is given once for each of them; in archives, they are ``NAME[0]`` and so
    on, and names need not begin with the ``/`` that inputs may begin with.
    """
    arguments = {argument.name: argument for argument in model.inputs}
    names = {**as_entries({name: name for name in arguments}), **{name: name for name in arguments}}
    arrays: dict[str, list[Array]] = {}
    for text in given:
        name, path = _name_and_path(text, arguments)
        is_archive = name not in arguments and text.endswith(".npz")
        for entry, array in read_archive(text) if is_archive else [(name, _read(path) if name in arguments else None)]:
            known = names.get(entry) or names.get(entry.rpartition("[")[0])
            if known is None or array is None:
                raise Error("IRC410", f"the model has no input {entry!r}; {suggestion(entry, arguments)}")
            arrays.setdefault(known, []).append(array)
    return {name: _as_stated(files, arguments[name]) for name, files in arrays.items()}


def stated_sizes(model: CompiledModel, feeds: Mapping[str, Any], options: Namespace) -> dict[str, int]:
    """The sizes that ``--dim`` and ``--shape`` give inputs that are not in ``feeds``, by name.

    Raises:
        Error: IRC311 unless they are of dimensions of inputs that are made up, and do not contradict each other.
    """
    sizes: dict[str, int] = options.dim
    known = list(draw.assumed_sizes(draw.with_named_sizes(model.inputs)))
    missing = _missing(model, feeds)
    made_up = draw.assumed_sizes(draw.with_named_sizes(missing))
    for name in sizes:
        if name not in known and name in model.sizes:
            raise Error("IRC311", f"the model was compiled for {name}={model.sizes[name]}: --dim cannot change that")
        if name not in known:
            raise Error("IRC311", f"the model has no named dimension {name!r}; {suggestion(name, known)}")
        if name not in made_up:
            raise Error("IRC311", f"no input that is made up has the dimension {name!r}: --dim is for those alone")
    shaped = draw.sizes_of_shapes(missing, options.shape)
    for name, size in shaped.items():
        if sizes.get(name, size) != size:
            raise Error("IRC311", f"--shape makes {name!r} {size}, --dim {sizes[name]}")
    return {**sizes, **shaped}


def complete(
    model: CompiledModel, given: Mapping[str, Any], options: Namespace, limits: Limits | None = None
) -> dict[str, Any]:
    """``given`` and made-up values for the other required inputs; assumptions are printed on stderr.

    Args:
        model: the model, which is run on what is made up if there are sizes to choose.
        given: values by name.
        options: the seed that the others are made up from, and sizes stated for them.
        limits: of each run.

    Raises:
        Error: IRC102 an input cannot be made up, or as the model has nothing that it accepts; as of `stated_sizes`.
    """
    stated = {**draw.given_sizes(model.inputs, given), **stated_sizes(model, given, options)}
    fitting = Fitting(model, given, {**model.sizes, **stated}, limits)
    if not fitting.made_up:
        return dict(given)
    made = make_or_explain(fitting, options.seed, dict.fromkeys(fitting.free, 1), draw.Style.PLAIN)
    named = draw.assumed_sizes(_missing(model, given))
    assumed = {n: size for n, size in made.sizes.items() if n not in stated and (n in named or size != 1)}
    if assumed:
        say(draw.assumption(assumed))
    return {**made.feeds, **given}


def _missing(model: CompiledModel, given: Mapping[str, Any]) -> list[Argument]:
    """The inputs without a value."""
    return [argument for argument in model.inputs if argument.name not in given and not argument.optional]


def _name_and_path(text: str, names: Collection[str]) -> tuple[str, str]:
    """Split ``NAME=FILE``. Both may contain ``=``: the longest prefix that is one of ``names`` counts."""
    splits = [(text[:i], text[i + 1 :]) for i, char in enumerate(text) if char == "="]
    return next((split for split in reversed(splits) if split[0] in names), (splits or [("", text)])[0])


def _read(path: str) -> Array:
    """The array in a ``.npy`` file, mapped, so that exaggerated sizes take no memory. Reads no pickles."""
    try:
        with open_regular(path) as file:
            start = file.read(6)
        if start == b"\x93NUMPY":
            with warnings.catch_warnings(action="ignore"):  # one message is enough
                array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
            if array.size and not array.itemsize:
                raise ValueError(f"{array.size} elements that take no bytes")
            if not is_text(array):
                raise ValueError("its strings have elements that are not characters")
            return array
    except OSError as error:
        raise cannot("IRC502", "read the file", error, path) from None
    except Exception as error:  # NumPy raises ValueError, TypeError, TokenError and others for headers that are wrong
        if "Python objects" in str(error):
            message = "this array holds Python objects, and irc reads no pickles; save strings with dtype=str"
        elif "not a valid dtype descriptor" in str(error):  # numpy.save writes it nevertheless
            message = f"NumPy cannot read such elements back ({error}): save array.view('V1')"
        else:
            message = f"this .npy file is damaged or truncated: {error or type(error).__name__}"
        raise Error("IRC504", message, path) from None
    if start.startswith(b"PK"):
        raise Error("IRC504", "this is a .npz archive: give it without the name of an input, and named so", path)
    raise Error("IRC504", "this is not a .npy file (numpy.save writes them)", path)


def _as_stated(arrays: Sequence[Array], argument: Argument) -> Any:
    """``arrays``, which are all that files hold, as a value of the input's type.

    If the input is a number, a string or a list of them, it is given by an array without dimensions or with one.
    Element types that .npy files have no name for, such as bfloat16, are taken to be those of the input.
    """
    type = argument.type.elem if isinstance(argument.type, OptionalType) else argument.type
    if isinstance(type, ListType) and not isinstance(type.elem, PrimType):
        return [_one(array, type.elem) for array in arrays]
    if isinstance(type, TupleType) and len(arrays) == len(type.elems):
        return tuple(map(_one, arrays, type.elems))
    if len(arrays) > 1:
        raise Error("IRC410", f"this input is given {len(arrays)} times; it is {type}", argument.where)
    return _one(arrays[0], type)


def _one(array: Array, type: Type) -> Any:
    if isinstance(type, PrimType) and array.ndim == 0:
        return array[()]
    if isinstance(type, ListType) and isinstance(type.elem, PrimType) and array.ndim == 1:
        return list(array)
    stated, found = type.dtype and type.dtype.numpy, array.dtype
    is_nameless = found.kind == "V" and found.names is None
    if is_nameless and stated is not None and stated.isbuiltin != 1 and stated.itemsize == found.itemsize:
        return array.view(stated)
    return array


def form(value: Any) -> str:
    """Element type and shape of an array; what kind of value another one is."""
    return f"{value.dtype} {list(value.shape)}" if is_array(value) else describe(value)


def summary(value: Any, levels: int = LEVELS) -> str:
    """A value in one line: type, shape, range of a tensor; length and, ``levels`` deep, items of a list."""
    if is_array(value):
        return _array_summary(value)
    if is_sequence(value):
        shown = [summary(item, levels - 1) for item in value[:4]] if levels else []
        return f"list of {len(value)}: [{', '.join(shown + ['...'] * (len(value) > len(shown)))}]"
    if is_mapping(value):
        entries = [f"{k!r}: {summary(v, levels - 1)}" for k, v in value.items()] if levels else ["..."]
        return f"{{{', '.join(entries)}}}"
    return repr(value)


def described(value: Any) -> OutputValue:
    """A value as ``--json`` has it."""
    from irc.cli.results import OutputValue

    found = OutputValue(summary(value))
    if is_array(value):
        found.dtype, found.shape = str(value.dtype), list(value.shape)
        if value.size and value.dtype.kind not in "OUSTc":
            wide = value.astype(np.float64)
            with np.errstate(all="ignore"):
                numbers = [float(number) for number in (wide.min(), wide.max(), wide.mean())]
            found.min, found.max, found.mean = (number if np.isfinite(number) else None for number in numbers)
    return found


def _array_summary(array: Array) -> str:
    text = f"{array.dtype} {list(array.shape)}"
    if array.size == 0:
        return text
    if array.size <= 8 or array.dtype.kind in "OUSTc":
        return f"{text} {array.ravel()[:8].tolist()}{' ...' if array.size > 8 else ''}"
    wide = array.astype(np.float64)
    with np.errstate(all="ignore"):  # the mean of infinities, say, is what it is
        return f"{text} min {wide.min():.6g}, max {wide.max():.6g}, mean {wide.mean():.6g}"
