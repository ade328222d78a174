"""What the agent knows and remembers: status, journal, counters, metrics."""
