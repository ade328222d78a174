"""The agent's modules, all of them: it loads some only where a pod wishes what they do."""

from __future__ import annotations

from importlib import import_module

PARTS = ("agent", "checkpoints", "outputs")


def load_agent() -> None:
    """Import them; in the worker alone."""
    for part in PARTS:
        import_module(f"podferry.sidecar.{part}")
