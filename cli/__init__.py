"""The `podferry` command: a package for each family of verbs, a module for each verb."""
