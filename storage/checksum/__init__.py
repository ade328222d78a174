"""Checksums: compute them, combine CRCs, read them from response headers.

Callers decide what a mismatch means.
"""
