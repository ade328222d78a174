"""Which files form a checkpoint, and whether it is complete.

Decisions are made from the files alone: no store, no upload.
"""
