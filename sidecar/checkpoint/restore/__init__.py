"""Download a committed checkpoint, verify it, and put it in place.

Nothing here writes to the destination.
"""
