"""The engine for every scheme that has an fsspec file system and no engine of its own.

S3 and Azure use `obstore` unless a URI selects fsspec.
"""
