"""The loop from a detected checkpoint to its commit: link, queue, upload, commit, free space.

The order of the steps and the state of each checkpoint belong here, the steps themselves to the packages
below.
"""
