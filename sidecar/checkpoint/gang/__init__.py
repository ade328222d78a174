"""Joins checkpoints that several pods write together: membership, the part of each rank, the joint commit.

Pods communicate only through objects at the destination, never over the network.
"""
