"""A connection pool for plain HTTP/1.1 GET requests with adaptive concurrency.

It takes plain answers alone. Retries, redirects and errors belong to the store's own client.
"""
