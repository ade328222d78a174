"""The commit log at the destination: read it, append to it conditionally, remove old commits, verify.

Nothing here looks at the trainer's directory.
"""
