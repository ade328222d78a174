"""Steps that read, convert and plan datasets."""
