"""`podferry run`, and what a killed run left."""
