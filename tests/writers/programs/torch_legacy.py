"""torch.save in its older format: a new file per step, and one that is overwritten in place."""

import torch
from announce import ROOT, saving

for step in (1, 2, 3):
    values = torch.full((5050,), float(step))  # one storage: they are written in the order of their addresses
    state = {"step": step, "weights": values[:5000], "bias": values[5000:]}
    for name in (f"step-{step}", "last"):
        with saving(name):
            torch.save(state, ROOT / f"{name}.pt", _use_new_zipfile_serialization=False)
