"""Sets the annotations of a training task."""
