"""The agent's modules, all of them: it loads some only where a pod configures what they do."""

from __future__ import annotations

from importlib import import_module

PARTS = ("agent.agent", "checkpoint.pipeline.checkpoint_job", "outputs.output_job")


def load_agent() -> None:
    """Import them; in the worker alone."""
    for part in PARTS:
        import_module(f"podferry.sidecar.{part}")
