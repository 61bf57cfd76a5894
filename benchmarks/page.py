"""What pages of large models take: ``python -m benchmarks.page``. Needs Chromium.

Processor time and bytes of ``irc report``, how long a click takes to be answered, and frames a second while a reader
zooms and moves. The status is 1 if something is beyond its limit.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import onnx

from benchmarks.yolov3 import build
from tests.browser import CHROMIUM, Browser

CLICK, FRAMES, BYTES = 100, 20, 6e6
"""Limits: milliseconds, median of 20 clicks; frames a second; bytes of YOLOv3's page."""

CLICKS = """(async () => {
    const canvas = document.querySelectorAll(".canvas")[1], times = [];
    const frame = () => new Promise(requestAnimationFrame);
    for (let i = 0; i < 20; i++) {
        const boxes = [...canvas.querySelectorAll(".item")];
        const box = boxes[(i * 7) % boxes.length].getBoundingClientRect();
        const at = {clientX: box.x + box.width / 2, clientY: box.y + box.height / 2};
        const start = performance.now();
        canvas.dispatchEvent(new MouseEvent("click", at));
        await frame();
        await frame();
        times.push(performance.now() - start);
    }
    return times;
})()"""

WHEEL = """(async () => {
    const canvas = document.querySelectorAll(".canvas")[1], box = canvas.getBoundingClientRect(), times = [];
    const at = {clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, cancelable: true};
    for (let i = 0; i < 60; i++) {
        const start = performance.now();
        canvas.dispatchEvent(new WheelEvent("wheel", {...at, deltaY: i % 20 < 10 ? 40 : -40}));
        await new Promise(requestAnimationFrame);
        times.push(performance.now() - start);
    }
    return times;
})()"""


def large() -> str:
    """IR text of 5,000 nodes, each of which reads one of the thirty before it."""
    names = ["x", *(f"layer.{i}.out" for i in range(5000))]
    lines = [
        f"  %{name} : Float(64, 64) = onnx::Add(%{names[i]}, %{names[max(0, i - i * 7 % 30)]})"
        for i, name in enumerate(names[1:])
    ]
    return "\n".join(["graph(%x : Float(64, 64)):", *lines, "  return (%layer.4999.out)", ""])


def measure(model: Path, seconds: float, most_bytes: float | None) -> Iterator[tuple[str, float, float]]:
    """Rows of what is measured, its value and its limit: at most that, but for frames."""
    page = model.with_suffix(".html")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "irc", "report", model, "-o", page], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    yield "processor seconds", after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, seconds
    yield "bytes", page.stat().st_size, most_bytes or float("inf")
    with Browser() as browser:
        browser.open(page)
        yield "milliseconds a click", median(browser.run(CLICKS)), CLICK
        yield "frames a second, near", 1e3 / median(browser.run(WHEEL)), -FRAMES
        browser.click('[title="show all of it"]', 1)
        yield "frames a second, all of it", 1e3 / median(browser.run(WHEEL)), -FRAMES
        yield "errors", len(browser.faults), 0


def main() -> int:
    """Print a line for each measurement; 1 if one is beyond its limit."""
    if CHROMIUM is None:
        print("Chromium is not installed", file=sys.stderr)
        return 1
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        yolov3, text = Path(folder) / "yolov3.onnx", Path(folder) / "large.ir"
        onnx.save(build(), yolov3)
        text.write_text(large(), "utf-8")
        for model, seconds, most_bytes in ((yolov3, 6, BYTES), (text, 25, None)):
            for what, value, limit in measure(model, seconds, most_bytes):
                is_beyond = value < -limit if limit < 0 else value > limit
                failed = failed or is_beyond
                print(f"{model.stem:8} {what:28} {value:14,.1f}{'  beyond the limit' if is_beyond else ''}")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
