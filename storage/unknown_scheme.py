"""The error for a URI that no installed engine opens: similar schemes, or the command that installs one."""

from __future__ import annotations

from operator import ne

from podferry.contract.claims import hint_for
from podferry.contract.errors import UnknownScheme
from podferry.contract.schemes import remedy_for_other_name
from podferry.contract.suggest import did_you_mean
from podferry.contract.uri import Uri
from podferry.storage.engines import known_schemes


def not_installed(uri: Uri, extra: str) -> UnknownScheme:
    """The error for a scheme whose engine needs podferry's `extra`."""
    remedy = f"Run: pip install 'podferry[{extra}]'"
    return UnknownScheme.of(f"no engine for {uri.scheme}:// is installed", str(uri), remedy)


def unknown_scheme(uri: Uri) -> UnknownScheme:
    """The error for a scheme that no engine names."""
    if hint := hint_for(uri.scheme) or remedy_for_other_name(uri.scheme):
        return UnknownScheme.of(f"no engine opens {uri.scheme}://", str(uri), hint)
    known = known_schemes()
    similar = _one_letter_off(uri.scheme, known)
    remedy = did_you_mean(uri.scheme, known, similar or f"Known schemes: {', '.join(known)}")
    return UnknownScheme.of(f"no engine opens {uri.scheme}://", str(uri), remedy)


def _one_letter_off(scheme: str, schemes: tuple[str, ...]) -> str:
    """A remedy for typos in names that are too short for a similarity search: `s4`."""
    same_length = [known for known in schemes if len(known) == len(scheme)]
    similar = [f"{known!r}" for known in same_length if sum(map(ne, known, scheme)) == 1]
    return f"Did you mean {' or '.join(similar)}?" if similar else ""
