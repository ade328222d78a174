"""Requests of our own to Google Cloud Storage: listings, uploads in parts. All else goes through gcsfs."""
