"""What a cache holds, as its holders report it."""
