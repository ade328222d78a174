"""What annotations are refused for before they are read: too many, too long, impossible characters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podferry.contract.errors import Problem
from podferry.contract.hidden_secrets import hide_in_location
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import PREFIX

MAX_SETTINGS = 256
"""Annotations of podferry in one pod: with thousands, a decision would take seconds."""
MAX_SETTINGS_BYTES = 256 * 1024
"""Source: Kubernetes, `TotalAnnotationSizeLimitB`, which it checks only after admission."""


def character_problems(settings: Mapping[str, str]) -> Iterator[Problem]:
    """Only what neither a variable, nor a path, nor an object's name can have, and the API server admits."""
    for name, text in settings.items():
        if "\0" in text:
            what = f"{PREFIX}{name}: it contains a NUL character"
            yield Problem(what, repr(hide_in_location(text)), "Remove it")


def size_problems(settings: Mapping[str, str]) -> Iterator[Problem]:
    """Whether there are too many settings, or they are too long."""
    if len(settings) > MAX_SETTINGS:
        what, remedy = f"too many {PREFIX} annotations", "Use fewer datasets"
        yield Problem(what, f"{len(settings)}; at most {MAX_SETTINGS}", remedy)
    size = sum(len(name) + len(text) for name, text in settings.items())
    if size > MAX_SETTINGS_BYTES:
        measured = f"{format_bytes(size)}; a pod may have {format_bytes(MAX_SETTINGS_BYTES)} of annotations"
        yield Problem(f"the {PREFIX} annotations are too long", measured, "Shorten them")
