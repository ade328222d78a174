"""The engine for directories: `file://` and plain paths.

Staging directories of an agent belong to `podferry.sidecar.staging`.
"""
