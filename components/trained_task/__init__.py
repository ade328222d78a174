"""Finds the lineage of a training task from another step of its pipeline."""
