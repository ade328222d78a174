"""Computes and combines checksums, reads them from response headers; callers decide what a mismatch means."""
