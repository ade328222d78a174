"""A connection pool for plain HTTP/1.1 requests, with adaptive concurrency; sessions for all others."""
