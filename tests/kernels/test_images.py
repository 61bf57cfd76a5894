"""ImageDecoder: its formats are in the node suite; here what is odd, large, or no image."""

import io
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from PIL import Image

from irc.errors import Error
from irc.runtime.bounds import in_own_scope, in_turn
from irc.runtime.limits import LimitGuard, Limits
from tests.kernels.helpers import run_kernel

GRAY = np.arange(0, 240, 10, dtype=np.uint8).reshape(4, 6)


def encoded(image: Image.Image, kind: str = "PNG") -> np.ndarray[Any, Any]:
    with io.BytesIO() as file:
        image.save(file, kind)
        return np.frombuffer(file.getvalue(), np.uint8)


def decode(data: Any, **attributes: Any) -> np.ndarray[Any, Any]:
    (found,) = run_kernel("ImageDecoder", [data], attributes, 20)
    assert found.flags.c_contiguous and found.dtype == np.uint8
    return found


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA", "I;16"])
def test_every_kind_of_pixel_becomes_the_channels_asked_for(mode: str) -> None:
    if mode == "I;16":
        image, expected = Image.fromarray(GRAY.astype(np.uint16) << 8), GRAY
    else:
        image = Image.fromarray(GRAY).convert(mode)
        expected = np.asarray(image.convert("L"))
    data = encoded(image)
    assert (decode(data) == expected[:, :, None]).all()
    assert decode(data).shape == (4, 6, 3)
    gray = decode(data, pixel_format="Grayscale")
    assert gray.shape == (4, 6, 1)
    assert (gray[:, :, 0] == expected).all()


@pytest.mark.parametrize("data", [b"", b"no image", b"\x89PNG\r\n\x1a\n", b"GIF89a" + bytes(40)])
def test_what_is_no_image_has_no_pixels(data: bytes) -> None:
    assert decode(np.frombuffer(data, np.uint8)).shape == (0, 0, 3)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "TIFF", "WEBP", "PPM"])
def test_images_that_are_cut_off(kind: str) -> None:
    rng = np.random.default_rng(0)
    data = encoded(Image.fromarray(rng.integers(0, 255, (64, 64, 3)).astype(np.uint8)), kind)
    assert decode(data).shape == (64, 64, 3)
    for length in range(0, data.size - 16, data.size // 20):
        assert decode(data[:length]).size in (0, 64 * 64 * 3)


def test_images_larger_than_a_run_may_use_are_not_decoded() -> None:
    data = encoded(Image.new("L", (4000, 4000)))
    assert data.size < 40_000
    with pytest.raises(Error, match=r"^IRC442: "):
        in_own_scope(LimitGuard(Limits(bytes=1 << 20)), in_turn, decode, data)


def test_images_of_absurd_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 15)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert decode(encoded(Image.fromarray(GRAY))).shape == (4, 6, 3)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    with pytest.raises(Error, match=r"^IRC422: .*pixels"):
        decode(encoded(Image.fromarray(GRAY)))


def test_bad_operands() -> None:
    for data in (np.zeros((2, 3), np.uint8), np.zeros(3, np.int8)):
        with pytest.raises(Error, match="vector of uint8"):
            decode(data)
    with pytest.raises(Error, match="pixel_format"):
        decode(np.zeros(3, np.uint8), pixel_format="CMYK")


def test_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(Error, match=r"^IRC321: .*pip install 'irc\[images\]'"):
        decode(np.zeros(3, np.uint8))
