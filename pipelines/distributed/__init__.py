"""Several workers, one checkpoint: each writes its part; a step is committed when all are there."""
