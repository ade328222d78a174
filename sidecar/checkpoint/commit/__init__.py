"""The commit log at the destination: read it, append to it conditionally, remove old commits, verify.

This package does not read the trainer's directory.
"""
