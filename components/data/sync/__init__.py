"""Syncs a destination with a dataset."""
