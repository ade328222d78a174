"""Requests of our own to Google Cloud Storage: uploads in parts. Everything else goes through gcsfs."""
