"""Accelerate's save_state, as diffusers' training scripts call it: into `checkpoint-N`."""

import torch
from accelerate import Accelerator
from announce import ROOT, saved

accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.Adam(model.parameters())
schedule = torch.optim.lr_scheduler.ConstantLR(optimizer)
model, optimizer, schedule = accelerator.prepare(model, optimizer, schedule)
for step in (1, 2, 3):
    accelerator.backward(model(torch.ones(1, 64)).sum())
    optimizer.step()
    accelerator.save_state(ROOT / f"checkpoint-{step}")
    saved(f"checkpoint-{step}")
