"""Helpers for asyncio, file identity, digests and logging.

Nothing here knows datasets or checkpoints.
"""
