"""h5py: a new file per step, and one that is opened again and changed in place."""

import h5py
import numpy as np
from announce import ROOT, saved, saving

with h5py.File(ROOT / "last.h5", "w") as file:
    file["weights"] = np.zeros((64, 64))
saved("last")
for step in (1, 2, 3):
    with saving(f"step-{step}"), h5py.File(ROOT / f"step-{step}.h5", "w") as file:
        file["weights"] = np.full((64, 64), float(step))
        file["bias"] = np.full(64, float(step))
    with saving("last"), h5py.File(ROOT / "last.h5", "r+") as file:
        file["weights"][:] = float(step)
