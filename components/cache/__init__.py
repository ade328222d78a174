"""Plans the cache of a training pod, and refuses what cannot fit."""
