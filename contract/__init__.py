"""Pure values and rules. Nothing here does I/O, reads a clock or the environment."""
