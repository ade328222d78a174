"""WebDAV: listings by PROPFIND, ranges by the connection pool, uploads to a temporary name that is moved."""
