"""A store in memory with scripted faults. It passes the same contract suite as real stores.

No test may need more of it than the protocol and its faults.
"""
