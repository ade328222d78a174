"""LightGBM: a snapshot per iteration, with its own program's names, and a model that is overwritten."""

import ctypes

import lightgbm
import numpy as np
from announce import ROOT, saved
from lightgbm import basic


def snapshot(state):
    number = state.iteration + 1
    path = str(ROOT / f"model.txt.snapshot_iter_{number}").encode()
    save = basic._LIB.LGBM_BoosterSaveModel  # as the program does, without what Python appends
    basic._safe_call(save(state.model._handle, 0, -1, 0, ctypes.c_char_p(path)))
    saved(f"snapshot-{number}")
    state.model.save_model(ROOT / "last.txt")
    saved("last")


data = lightgbm.Dataset(np.arange(400.0).reshape(100, 4), np.arange(100.0))
lightgbm.train({"num_threads": 1, "verbose": -1}, data, 3, callbacks=[snapshot])
