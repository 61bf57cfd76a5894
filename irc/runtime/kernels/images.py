"""ImageDecoder, by Pillow."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.registry import computes, one_of
from irc.runtime.kernels.support import Array, c_order, check_size, needed

if TYPE_CHECKING:
    pass

FORMATS = ("BMP", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
"""What the specification names, by Pillow's names."""

CHANNELS = {"RGB": ("RGB", 3), "BGR": ("RGB", 3), "Grayscale": ("L", 1)}
"""Pixel format -> Pillow's mode, and how many channels it has."""

BYTE = np.dtype(np.uint8)


@computes(
    "onnx::ImageDecoder",
    pixel_format=one_of("pixel_format", "RGB", CHANNELS),
    pillow=lambda node: needed("PIL.Image", node.kind),
)
def image_decoder(encoded: Array, *, pixel_format: str, pillow: Any) -> Array:
    """Of an encoded image [bytes] the pixels [height, width, channels], uint8; without any if it cannot be decoded."""
    mode, channels = CHANNELS[pixel_format]
    if encoded.ndim != 1 or encoded.dtype != BYTE:
        raise Error("IRC421", f"an encoded image is a vector of uint8, not {encoded.dtype}{list(encoded.shape)}")
    try:
        pixels = _decode(pillow, encoded.tobytes(), mode, channels)
    except pillow.DecompressionBombError as error:
        raise Error("IRC422", str(error)) from None
    except (OSError, SyntaxError, ValueError, EOFError):  # what Pillow raises for files that it cannot read
        return np.zeros((0, 0, channels), BYTE)
    return c_order(pixels[:, :, ::-1] if pixel_format == "BGR" else pixels)


def _decode(pillow: Any, data: bytes, mode: str, channels: int) -> Array:
    """Pixels in ``mode``, [height, width, channels]; the size is known, and checked, before they are decoded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pillow.DecompressionBombWarning)
        with pillow.open(io.BytesIO(data), formats=FORMATS) as image:
            shape = check_size((image.height, image.width, channels), BYTE)
            if image.mode.startswith("I;16"):  # Pillow's own conversion would cut off what is above 255
                image = pillow.fromarray((np.asarray(image) >> 8).astype(BYTE))
            return np.array(image.convert(mode)).reshape(shape)
