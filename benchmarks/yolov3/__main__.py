"""``python -m benchmarks.yolov3``: write the model (``--write``), or climb the compile-time ladder (``--ladder``)."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from benchmarks.yolov3.model import build


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.yolov3", description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", type=Path, metavar="FILE.onnx", help="build the model and write it there")
    action.add_argument("--ladder", action="store_true", help="measure the designs that lead to irc's")
    model = parser.add_argument_group("the model")
    model.add_argument("--image-size", type=int, default=416, help="input height and width in pixels (default 416)")
    model.add_argument("--width-divisor", type=int, default=1, help="divide all channels: 1, 2, 4, 8 or 16")
    model.add_argument("--seed", type=int, default=0, help="of the weights (default 0)")
    model.add_argument("--batch-norm", action="store_true", help="keep batch normalisation, which exports fold")
    ladder = parser.add_argument_group("the ladder")
    ladder.add_argument("--subjects", default="scripted,onnx", help="scripted, onnx or both (default)")
    ladder.add_argument("--rungs", default="0,1,2,3,4", help="which rungs (default 0,1,2,3,4)")
    ladder.add_argument("--turns", type=int, default=5, help="how often each is measured (default 5)")
    ladder.add_argument("--copies", type=int, default=1, help="YOLOv3s side by side in one graph (default 1)")
    options = parser.parse_args()
    try:
        if options.ladder:
            climb(options)
        else:
            write(options)
    except (ValueError, OSError) as error:
        parser.error(str(error))


def write(options: argparse.Namespace) -> None:
    """Write the model and say what is in it."""
    model = build(
        image_size=options.image_size,
        width_divisor=options.width_divisor,
        seed=options.seed,
        batch_norm=options.batch_norm,
    )
    options.write.write_bytes(model.SerializeToString())
    operators = Counter(node.op_type for node in model.graph.node)
    print(f"{options.write}: {options.write.stat().st_size:,} bytes, {operators.total():,} nodes")
    for operator, count in operators.most_common():
        print(f"{count:6} {operator}")


def climb(options: argparse.Namespace) -> None:
    """Measure the ladder."""
    from benchmarks.yolov3 import ladder, report

    subjects = options.subjects.split(",")
    rungs = sorted({int(number) for number in options.rungs.split(",")})
    if set(subjects) - set(ladder.SUBJECTS) or rungs[0] < 0 or rungs[-1] >= len(ladder.RUNGS):
        raise ValueError(f"subjects are {', '.join(ladder.SUBJECTS)}; rungs are 0 to {len(ladder.RUNGS) - 1}")
    if options.turns < 1 or options.copies < 1:
        raise ValueError("--turns and --copies must be at least 1")
    report.run(subjects, rungs, options.turns, options.copies)


if __name__ == "__main__":
    main()
