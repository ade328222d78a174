"""What podferry writes at a destination: commits, parts of ranks, notes, tombstones, the record of outputs.

The layout of objects and the documents alone; who reads and writes them is in `podferry.sidecar`.
"""
