"""TensorFlow's SavedModel, a directory per step."""

import tensorflow as tf
from announce import ROOT, saved


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.weights = tf.Variable(tf.zeros((64, 32)))

    @tf.function(input_signature=[tf.TensorSpec((None, 64), tf.float32)])
    def __call__(self, batch):
        return batch @ self.weights


model = Model()
for step in (1, 2):
    model.weights.assign_add(tf.ones_like(model.weights))
    tf.saved_model.save(model, str(ROOT / f"export-{step}"))
    saved(f"export-{step}")
