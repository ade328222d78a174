"""TensorFlow's Saver, through CheckpointManager, which keeps two."""

import tensorflow as tf
from announce import ROOT, saved

weights = tf.Variable(tf.zeros((64, 32)))
manager = tf.train.CheckpointManager(tf.train.Checkpoint(weights=weights), str(ROOT), max_to_keep=2)
for step in (1, 2, 3):
    weights.assign_add(tf.ones_like(weights))
    manager.save(checkpoint_number=step)
    saved(f"ckpt-{step}")
