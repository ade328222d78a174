"""Verbs of a cache in the cluster, as steps: create it, warm it up, clear it, remove its files, delete it."""
