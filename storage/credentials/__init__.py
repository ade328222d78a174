"""Where credentials and endpoints come from, and when they are read again."""
