"""Pure values and rules: no I/O, clock or environment."""
