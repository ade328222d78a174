"""A store in memory with scripted faults. It passes the same contract suite as the real stores."""
