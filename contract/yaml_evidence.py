"""Says why a text is not YAML, and where."""

from __future__ import annotations

import yaml


def yaml_evidence(error: Exception) -> str:
    """Where a text is not YAML, and why, in one line."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return " ".join(str(error).split())
