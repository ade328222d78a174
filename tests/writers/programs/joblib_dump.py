"""joblib: a dump per step, compressed and not, and one that is overwritten."""

import joblib
import numpy as np
from announce import ROOT, saving

for step in (1, 2, 3):
    model = {"weights": np.full((64, 32), float(step)), "step": step}
    for name, compress in ((f"step-{step}.joblib", 0), ("last.joblib", 0), (f"packed-{step}.joblib", 3)):
        with saving(name):
            joblib.dump(model, ROOT / name, compress=compress)
