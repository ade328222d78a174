"""How many files and connections this process may have open."""

from __future__ import annotations

import resource


def raise_open_files() -> int:
    """Raise the limit as far as this process may, and return it: many systems allow 1,024 unless asked."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most
