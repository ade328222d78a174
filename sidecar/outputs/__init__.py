"""Uploads the outputs directory at intervals and at the end, each file by itself, without a commit."""
