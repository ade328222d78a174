"""Packages that only some users need: which of podferry's extras installs them."""

from __future__ import annotations

from podferry.contract.errors import Problem

EXTRA_OF = {"cryptography": "webhook", "jinja2": "kfp", "kfp": "kfp", "kubernetes": "cluster"}
"""Top-level module of such a package -> extra. Those of stores are found by their scheme."""


def missing_extra(error: ImportError) -> Problem | None:
    """What to install if a module of an extra is missing; None for any other failed import."""
    module = (error.name or "").partition(".")[0]
    if module not in EXTRA_OF:
        return None
    return Problem(
        f"{module} is not installed", str(error), f"Run: pip install 'podferry[{EXTRA_OF[module]}]'"
    )
