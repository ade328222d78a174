"""From the trainer's files to a durable commit, and back.

What outputs are (files that are uploaded as they are) belongs to `outputs`.
"""
