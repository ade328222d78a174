"""Paddle: parameters and optimizer in two files with one stem, written in place in turn."""

import paddle
from announce import ROOT, saved

layer = paddle.nn.Linear(64, 64)
optimizer = paddle.optimizer.Adam(parameters=layer.parameters())
for epoch in (1, 2, 3):
    layer(paddle.ones((2, 64))).sum().backward()
    optimizer.step()
    optimizer.clear_grad()
    paddle.save(layer.state_dict(), str(ROOT / f"epoch-{epoch}.pdparams"))
    paddle.save(optimizer.state_dict(), str(ROOT / f"epoch-{epoch}.pdopt"))
    saved(f"epoch-{epoch}")
