"""Reads a dataset from a holder where it has the files, and from the dataset's own store otherwise."""
