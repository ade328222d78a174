"""A stage that pods of a node read without a copy: checked, adopted, locked by its readers."""
