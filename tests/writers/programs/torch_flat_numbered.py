"""torch.save: model and optimizer of a step in two files at the top."""

import torch
from announce import ROOT, saving

for step in (100, 200, 300):
    with saving(f"{step}"):
        torch.save({"weights": torch.full((100, 50), float(step))}, ROOT / f"model-{step}.pt")
        torch.save({"moments": torch.full((100, 50), step / 2)}, ROOT / f"optimizer-{step}.pt")
