"""What the agent knows and remembers: status, journal, counters, metrics.

Values and their files only; the packages above change them.
"""
