"""The engine for directories: `file://` and plain paths.

`podferry.sidecar.staging` manages the agent's staging directories.
"""
