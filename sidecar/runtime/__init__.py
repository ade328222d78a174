"""Helpers for asyncio, files and logging. They know neither datasets nor checkpoints."""
