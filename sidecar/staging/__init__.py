"""The staging directory: its owner, partial files, atomic renames, and the room in its volume.

No network.
"""
