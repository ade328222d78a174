"""The engine for S3 and Azure, on obstore.

Requests that obstore cannot make belong to `s3` and `azure`.
"""
