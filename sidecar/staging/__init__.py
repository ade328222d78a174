"""The staging directory: its owner, partial files, atomic renames, and the free space of its volume.

No network.
"""
