"""`podferry dataset`: lists, freezes, downloads, syncs and packs datasets."""
