"""How requests reach a store: which certificates are trusted, and which proxy they go through."""
