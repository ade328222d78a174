"""Arguments of containers."""

from __future__ import annotations


def not_expanded(argument: str) -> str:
    """An argument in which Kubernetes replaces no `$(VARIABLE)`: the name of an object may have one."""
    return argument.replace("$(", "$$(")
