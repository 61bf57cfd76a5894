"""ImageDecoder, by Pillow."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, c_order, check_size, needed

if TYPE_CHECKING:
    from irc.ir import Node

FORMATS = ("BMP", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
"""What the specification names, by Pillow's names."""

CHANNELS = {"RGB": ("RGB", 3), "BGR": ("RGB", 3), "Grayscale": ("L", 1)}
"""Pixel format -> Pillow's mode, and how many channels it has."""

BYTE = np.dtype(np.uint8)


@kernel("onnx::ImageDecoder")
def image_decoder(node: Node) -> Kernel:
    """Of an encoded image [bytes] the pixels [height, width, channels], uint8; without any if it cannot be decoded."""
    pixel_format = node.attributes.get("pixel_format", "RGB")
    if pixel_format not in CHANNELS:
        raise Error("IRC320", f"pixel_format is {pixel_format!r}; it must be one of {', '.join(CHANNELS)}")
    mode, channels = CHANNELS[pixel_format]
    pillow = needed("PIL.Image", node.kind)

    def run(encoded: Array) -> Array:
        if encoded.ndim != 1 or encoded.dtype != BYTE:
            raise Error("IRC421", f"an encoded image is a vector of uint8, not {encoded.dtype}{list(encoded.shape)}")
        try:
            pixels = _decode(pillow, encoded.tobytes(), mode, channels)
        except pillow.DecompressionBombError as error:
            raise Error("IRC422", str(error)) from None
        except (OSError, SyntaxError, ValueError, EOFError):  # what Pillow raises for files that it cannot read
            return np.zeros((0, 0, channels), BYTE)
        return c_order(pixels[:, :, ::-1] if pixel_format == "BGR" else pixels)

    return run


def _decode(pillow: Any, data: bytes, mode: str, channels: int) -> Array:
    """Pixels in ``mode``, [height, width, channels]; the size is known, and checked, before they are decoded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pillow.DecompressionBombWarning)
        with pillow.open(io.BytesIO(data), formats=FORMATS) as image:
            shape = check_size((image.height, image.width, channels), BYTE)
            if image.mode.startswith("I;16"):  # Pillow's own conversion would cut off what is above 255
                image = pillow.fromarray((np.asarray(image) >> 8).astype(BYTE))
            return np.array(image.convert(mode)).reshape(shape)
