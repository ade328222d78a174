"""Reads from memory, writes through the store's SDK; compares that with reading the store."""
