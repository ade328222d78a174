"""Hard-link a complete checkpoint, fingerprint it and upload it, also across restarts.

An upload alone makes nothing durable: `commit` does.
"""
