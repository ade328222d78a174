"""Unpack tar and zip archives while they stream.

This package does not know where the bytes come from.
"""
