"""Download, generate, train, upload; the outputs are kept even if training fails."""
