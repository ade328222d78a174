"""A sweep: several trainings of one dataset, each with its own lineage, and the best of them."""
