"""The configuration of one agent, parsed once at its start."""
