"""The configuration of one agent, parsed once at its start.

Nothing here changes while the agent runs.
"""
