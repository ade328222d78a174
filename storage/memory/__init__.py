"""A store in memory with scripted faults. It passes the same contract suite as the real stores.

Tests use nothing of it but the protocol and the faults.
"""
