"""Says why tasks of a run have failed."""
