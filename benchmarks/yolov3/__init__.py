"""YOLOv3-416 as an exporter would write it, from seeded weights."""

from benchmarks.yolov3.model import build

__all__ = ["build"]
