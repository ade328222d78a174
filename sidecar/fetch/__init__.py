"""The download engine: planned range requests become verified files in the staging directory, resumably.

It knows objects and ranges. Datasets, archives and checkpoints are above it.
"""
