"""Freezes a dataset into one reference."""
