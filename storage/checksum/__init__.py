"""Checksums: compute them, combine CRCs, read them from response headers.

What a mismatch means is for the caller to decide.
"""
