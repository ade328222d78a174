"""Says whether what a run trained is safe."""
