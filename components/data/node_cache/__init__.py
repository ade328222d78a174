"""Verbs of a cache in the cluster, as steps: warm it up, clear it, remove files of its source."""
