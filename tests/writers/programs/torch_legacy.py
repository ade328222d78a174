"""torch.save in its older format: a new file per step, and one that is overwritten in place."""

import torch
from announce import ROOT, saving

for step in (1, 2, 3):
    state = {"step": step, "weights": torch.full((100, 50), float(step)), "bias": torch.zeros(50)}
    for name in (f"step-{step}", "last"):
        with saving(name):
            torch.save(state, ROOT / f"{name}.pt", _use_new_zipfile_serialization=False)
