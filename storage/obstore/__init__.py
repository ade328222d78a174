"""The engine for S3 and Azure, on obstore.

Requests that obstore has no call for are in `s3` and `azure`.
"""
