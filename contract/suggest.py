"""Suggests the nearest known word for a misspelled one."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """A remedy: `Did you mean 'x'?` with the nearest of `known`, else `otherwise`."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for who has mistyped a word

    near = get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f"Did you mean {near[0]!r}?" if near else otherwise
