"""``python -m benchmarks.yolov3 --write model.onnx``: build the model and write it."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from benchmarks.yolov3.model import build


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.yolov3", description=__doc__)
    parser.add_argument("--write", type=Path, required=True, metavar="FILE.onnx", help="where to write the model")
    parser.add_argument("--image-size", type=int, default=416, help="input height and width in pixels (default 416)")
    parser.add_argument("--width-divisor", type=int, default=1, help="divide all channels: 1, 2, 4, 8 or 16")
    parser.add_argument("--seed", type=int, default=0, help="of the weights (default 0)")
    parser.add_argument("--batch-norm", action="store_true", help="keep batch normalisation, which exports fold")
    options = parser.parse_args()
    try:
        model = build(
            image_size=options.image_size,
            width_divisor=options.width_divisor,
            seed=options.seed,
            batch_norm=options.batch_norm,
        )
        options.write.write_bytes(model.SerializeToString())
    except (ValueError, OSError) as error:
        parser.error(str(error))
    operators = Counter(node.op_type for node in model.graph.node)
    print(f"{options.write}: {options.write.stat().st_size:,} bytes, {operators.total():,} nodes")
    for operator, count in operators.most_common():
        print(f"{count:6} {operator}")


if __name__ == "__main__":
    main()
