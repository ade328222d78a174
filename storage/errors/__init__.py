"""Turns vendors' exceptions into the error tree; no other package knows vendors' error codes and types."""
