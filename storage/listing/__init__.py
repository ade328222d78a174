"""Lists a dataset: recursively, directories in parallel, with suggestions if nothing is found."""
