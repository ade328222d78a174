"""Finds the newest sure checkpoint of a training."""
