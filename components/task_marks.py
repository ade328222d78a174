"""Attributes that podferry sets on tasks of a pipeline. Loads neither kfp nor what parses settings."""

OWN_STEP = "podferry_step"
"""The task is a step of podferry's own, which trains nothing itself."""
RUNS_JOB = "podferry_runs_job"
"""The step runs a job, and returns its lineage and destination."""
