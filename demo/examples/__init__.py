"""The example pipelines, each on small data: `make demo PIPELINE=NAME`."""
