"""XGBoost: its callback for checkpoints in binary JSON, and a model in JSON that is overwritten."""

import numpy as np
import xgboost
from announce import ROOT, saved


class Saved(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        saved(f"model_{epoch}")
        model.save_model(ROOT / "last.json")
        saved("last")
        return False


data = xgboost.DMatrix(np.arange(64.0).reshape(16, 4), np.arange(16.0))
keep = xgboost.callback.TrainingCheckPoint(ROOT, interval=1)
xgboost.train({"nthread": 1, "max_depth": 3}, data, 3, callbacks=[keep, Saved()])
