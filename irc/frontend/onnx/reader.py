"""Reading a model file: errors of files, and weights left where they are."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from irc.errors import Error, cannot
from irc.frontend.onnx.external import DataFile, DataFolder, FileSlice
from irc.frontend.onnx.wire import split

if TYPE_CHECKING:
    from onnx import ModelProto

MAX_BYTES = 2**31 - 1
"""The largest message that protobuf reads."""

_LFS_POINTER = b"version https://git-lfs"


@dataclass(slots=True)
class Source:
    """A model and where its data is.

    Attributes:
        model: the model.
        folder: where its external data may be; None if not known.
        regions: where ``raw_data`` of some initializers is that ``model`` lacks, by their number.
        path: the real path of the model's file; "" if it came without one.
    """

    model: ModelProto
    folder: DataFolder | None
    regions: dict[int, FileSlice] = field(default_factory=dict[int, FileSlice])
    path: str = ""

    def files(self) -> tuple[str, ...]:
        """Real paths of the files that were opened so far, the model's own first."""
        return (self.path, *(self.folder.files() if self.folder else ()))


def read_file(path: str) -> Source:
    """Read the model file at ``path``. Raises IRC120 (file), IRC121 (contents)."""
    if os.path.isdir(path):
        _fail("this is a folder, not a model file")
    try:
        file = DataFile(path)
    except FileNotFoundError:
        _fail("there is no such file")
    except (OSError, ValueError) as error:
        raise cannot("IRC120", "read the file", error) from None
    if file.size > MAX_BYTES:
        _fail(
            f"the file has {file.size} bytes, but protobuf reads at most {MAX_BYTES}: "
            "save the model with external data (onnx.save_model(..., save_as_external_data=True))"
        )
    data = file.view()
    if bytes(data[: len(_LFS_POINTER)]) == _LFS_POINTER:
        raise Error("IRC121", "this is a Git LFS pointer, not the model itself: fetch it with 'git lfs pull'")
    found = split(data)
    folder = DataFolder(os.path.dirname(path) or ".")
    real = os.path.realpath(path)
    if found is None:
        return Source(_parse(data), folder, path=real)
    regions = {n: FileSlice(file, offset, length, copied=True) for n, (offset, length) in found.places.items()}
    return Source(_parse(found.message), folder, regions, real)


def _parse(data: bytes | memoryview) -> ModelProto:
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    model = ModelProto()
    try:
        model.ParseFromString(bytes(data))
    except DecodeError as error:
        raise Error("IRC121", f"this is no ONNX model, {_what_it_is(data) or f'or it is truncated: {error}'}") from None
    return model


def _what_it_is(data: bytes | memoryview) -> str:
    """A hint at what the file is if it is of another known kind, and what to do with it; else ""."""
    beginning = bytes(data[:512]).lstrip()
    if beginning.startswith(b"PK\x03\x04"):
        return "but an archive: what torch.jit.save has written, irc.compile takes from torch.jit.load(path)"
    return "but IR text: such files are called .ir" if beginning.startswith((b"graph(", b"graph ")) else ""


def _fail(message: str) -> NoReturn:
    raise Error("IRC120", message)
