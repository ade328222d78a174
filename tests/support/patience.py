"""How long a test waits for what comes within milliseconds on a quiet machine."""

PATIENCE = 120.0
"""Seconds. Only a test that fails waits so long; a busy machine with a cold disk cache may stop for many."""
