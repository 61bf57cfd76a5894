"""Generate tokens with a session: the cache grows in place, and a fork goes another way.

Prints::

    (1, 5, 4) copied 0 bytes
    (1, 6, 4) copied 0 bytes
    the fork has 7 positions, the session 6
"""

import numpy as np

import irc
from irc.ir import parse_graph

DECODER = """graph(%ids : Long(1, step), %past_0 : Float(1, past, 4)):
  %table : Float(8, 4) = prim::Constant[value=@"table"]()
  %x : Float(1, step, 4) = onnx::Gather[axis=0](%table, %ids)
  %present_0 : Float(1, total, 4) = onnx::Concat[axis=1](%past_0, %x)
  %keys : Float(1, 4, total) = onnx::Transpose[perm=[0, 2, 1]](%present_0)
  %scores : Float(1, step, total) = onnx::MatMul(%x, %keys)
  %weights : Float(1, step, total) = onnx::Softmax[axis=-1](%scores)
  %mixed : Float(1, step, 4) = onnx::MatMul(%weights, %present_0)
  %words : Float(4, 8) = onnx::Transpose[perm=[1, 0]](%table)
  %logits : Float(1, step, 8) = onnx::MatMul(%mixed, %words)
  return (%logits, %present_0)
"""

table = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
session = irc.Session(irc.compile(parse_graph(DECODER, weights={"table": table})), capacity=64)


def step(of: irc.Session, ids: list[int]) -> int:
    """Give tokens to a session; returns the most likely next one."""
    logits = of.run({"ids": [ids]}, outputs=["logits"])["logits"]
    return int(logits[0, -1].argmax())


token = step(session, [3, 1, 4, 1])
for _ in range(2):
    token = step(session, [token])
    print(session.caches["past_0"].shape, "copied", session.counters.copied_bytes, "bytes")

fork = session.fork()
step(fork, [token])
lengths = (each.caches["past_0"].shape[1] for each in (fork, session))
print("the fork has {} positions, the session {}".format(*lengths))
