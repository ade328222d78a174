"""Syncs a destination with a dataset: plans what differs, moves whole files, records what is equal."""
