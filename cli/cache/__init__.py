"""`podferry cache`: holders, which keep datasets for the pods near them."""
