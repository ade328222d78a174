"""Holders of one dataset fetch each file from the source once, and the rest from each other."""
