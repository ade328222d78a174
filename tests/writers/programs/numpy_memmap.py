"""NumPy: a mapped array that every save changes in place; nothing is ever closed in between."""

import numpy as np
from announce import ROOT, pause, saved

weights = np.lib.format.open_memmap(ROOT / "weights.npy", mode="w+", dtype=np.float64, shape=(4, 2048))
for step in (1, 2, 3):
    for row in range(4):
        weights[row] = step
        pause(0)
    weights.flush()
    saved("weights")
