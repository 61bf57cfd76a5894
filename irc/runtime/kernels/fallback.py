"""Adapter over onnx.reference."""

from __future__ import annotations
from typing import Any


def serves(node: Any) -> bool:
    return False


def refusal(node: Any) -> str | None:
    return "no kernel"


def bind(node: Any) -> Any:
    raise AssertionError
