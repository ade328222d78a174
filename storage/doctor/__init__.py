"""Finds out why a store cannot be used: one finding for each thing that has to work, with its remedy."""
