"""The engine for every scheme without an engine of its own; for S3 and Azure only if a URI selects it."""
