"""The HTTPS server and what it decides about a review."""
