"""Keras' ModelCheckpoint: weights in HDF5, a new file per epoch and one that is overwritten."""

import keras
import numpy as np
from announce import ROOT, saved


class Saved(keras.callbacks.Callback):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def on_epoch_end(self, epoch, logs=None):
        saved(self.name.format(epoch=epoch + 1))


def keep(name):
    """A callback that saves and one that announces it."""
    path = ROOT / f"{name}.weights.h5"
    return [keras.callbacks.ModelCheckpoint(path, save_weights_only=True), Saved(name)]


model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(64), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse", run_eagerly=True, jit_compile=False)
model.fit(
    np.ones((4, 8)),
    np.ones((4, 1)),
    epochs=3,
    verbose=0,
    callbacks=[*keep("epoch-{epoch:02d}"), *keep("last")],
)
