"""The engine for directories: `file://` and plain paths."""
