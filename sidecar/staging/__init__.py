"""The staging directory: ownership, partial files, atomic renames, and free space."""
