"""`podferry dataset`: lists, freezes, downloads and packs datasets."""
