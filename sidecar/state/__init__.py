"""What the agent knows and remembers: status, journal, counters, metrics.

Values and their files alone; whoever changes them is above.
"""
