"""Downloads a committed checkpoint, verifies it, and moves it into place.

This package never writes to the destination.
"""
