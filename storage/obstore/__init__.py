"""The engine for S3 and Azure, on obstore; requests that obstore lacks are in `s3` and `azure`."""
