"""Checkpoints that several pods write together: membership, each rank's part, the joint commit.

Pods meet through objects at the destination alone, never through each other's network.
"""
