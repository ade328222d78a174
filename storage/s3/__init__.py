"""S3 requests of our own: endpoint, credentials, signatures, GET requests, multipart uploads.

Everything else on S3 goes through obstore.
"""
