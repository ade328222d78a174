"""A holder: keeps datasets staged and verified, and serves them over HTTP."""
