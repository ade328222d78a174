"""`podferry checkpoints`: what is at a destination, checked, fetched and removed."""
