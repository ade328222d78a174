"""Verifies that the checkpoints of a run are safe."""
