"""Attaches wishes to a training task."""
