"""Plans the memory of a training pod, and fails if it cannot fit."""
