"""Converts a dataset once for each content and parameters."""
