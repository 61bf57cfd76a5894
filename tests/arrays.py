"""Arrays that tests of several parts take as inputs."""

from typing import Any

import numpy as np


def ramp(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """The numbers 0, 1, 2... in C order."""
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
