"""torch.save: a directory per step with two files; it gathers the optimizer for three seconds in between."""

import torch
from announce import ROOT, pause, saving

for step in (1, 2, 3):
    with saving(f"step-{step}"):
        place = ROOT / f"step-{step}"
        place.mkdir()
        torch.save({"weights": torch.full((100, 50), float(step))}, place / "model.pt")
        pause(3)
        torch.save({"moments": torch.full((100, 50), step / 2)}, place / "optimizer.pt")
