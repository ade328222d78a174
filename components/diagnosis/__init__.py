"""Steps that explain a run."""
