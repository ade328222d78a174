"""Web servers: index pages, sizes by HEAD requests, ranges by the connection pool; read only."""
