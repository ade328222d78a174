"""NumPy: `save` to a new file per step and to one that is overwritten."""

import numpy as np
from announce import ROOT, saving

for step in (1, 2, 3):
    for name in (f"step-{step}", "last"):
        with saving(name):
            np.save(ROOT / f"{name}.npy", np.full((128, 64), float(step)))
