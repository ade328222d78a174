"""Example pipelines to copy."""
