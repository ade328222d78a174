"""Image classification: images per second and the share of waiting, cold, warm and without podferry."""
