"""pickle: a new file per step, and one that is overwritten in place."""

import pickle

from announce import ROOT, saving

for step in (1, 2, 3):
    for name in (f"step-{step}", "last"):
        with saving(name), (ROOT / f"{name}.pkl").open("wb") as file:
            pickle.dump({"step": step, "weights": [float(step)] * 5000}, file)
