"""Steps that read the checkpoints of a training."""
