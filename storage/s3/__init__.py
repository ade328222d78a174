"""S3 requests of our own: those that obstore has no call for, and signed GET requests."""
