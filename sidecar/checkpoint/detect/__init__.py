"""Which files form a checkpoint, and whether it is complete.

Decided from the files alone: no store, no upload.
"""
