"""A connection pool for plain HTTP/1.1 GET requests, with adaptive concurrency."""
