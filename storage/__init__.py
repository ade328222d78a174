"""One protocol for every store, its engines, and a fake that passes the same contract suite."""
