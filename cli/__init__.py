"""The `podferry` command: one module a verb."""
