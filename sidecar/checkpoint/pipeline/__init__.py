"""The state of each checkpoint and the order of its steps: link, queue, upload, commit, free space."""
