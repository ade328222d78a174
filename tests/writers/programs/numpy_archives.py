"""NumPy: `savez` to a new archive per step and to one that is overwritten."""

import numpy as np
from announce import ROOT, saving

for step in (1, 2, 3):
    for name in (f"step-{step}", "last"):
        with saving(name):
            np.savez(ROOT / f"{name}.npz", weights=np.full((64, 32), float(step)), bias=np.zeros(64))
