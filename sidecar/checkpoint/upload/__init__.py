"""Link, fingerprint and upload a complete checkpoint, also across restarts; `commit` makes it durable."""
