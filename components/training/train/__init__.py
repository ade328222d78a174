"""Trains: a component around an image, or around a function."""
