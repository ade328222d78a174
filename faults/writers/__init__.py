"""Trainers that the fault run starts: each saves with one library, and imports nothing of podferry."""
