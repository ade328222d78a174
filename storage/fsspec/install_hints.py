"""Says which package to install for a scheme."""

from __future__ import annotations

from operator import ne

from fsspec.registry import known_implementations

from podferry.contract.errors import UnknownScheme
from podferry.contract.suggest import did_you_mean
from podferry.contract.uri import Uri
from podferry.storage import uri_schemes

EXTRAS = {
    "gs": "gcs",
    "gcs": "gcs",
    "s3": "s3fs",
    "s3a": "s3fs",
    "oss": "oss",
    "sftp": "sftp",
    "ssh": "sftp",
    "smb": "smb",
    "hdfs": "hdfs",
}
"""podferry's extra that installs the fsspec package of a scheme."""


def unknown_scheme(uri: Uri) -> UnknownScheme:
    """The error for a scheme without an installed engine: the command to run, or similar schemes."""
    scheme = uri.scheme
    if scheme in EXTRAS:
        remedy = f"Run: pip install 'podferry[{EXTRAS[scheme]}]'"
        return UnknownScheme.of(f"no engine for {scheme}:// is installed", str(uri), remedy)
    if scheme in known_implementations:
        remedy = _fsspec_hint(scheme)
        return UnknownScheme.of(f"no engine for {scheme}:// is installed", str(uri), remedy)
    schemes = {*uri_schemes.OBSTORE_SCHEMES, *EXTRAS, "file", "memory", "http", "https", "ftp"}
    known = f"Known schemes: {', '.join(sorted(schemes))}"
    remedy = did_you_mean(scheme, schemes, _one_letter_off(scheme, schemes) or known)
    return UnknownScheme.of(f"no engine opens {scheme}://", str(uri), remedy)


def _one_letter_off(scheme: str, schemes: set[str]) -> str:
    """A remedy for typos in names that are too short for a similarity search: `s4`."""
    same_length = [known for known in sorted(schemes) if len(known) == len(scheme)]
    similar = [f"{known!r}" for known in same_length if sum(map(ne, known, scheme)) == 1]
    return f"Did you mean {' or '.join(similar)}?" if similar else ""


def _fsspec_hint(scheme: str) -> str:
    known = known_implementations[scheme]
    package = known["class"].partition(".")[0]
    if package != "fsspec":
        return f"Run: pip install {package}"
    return f"Install what fsspec needs for it: {str(known.get('err', '')).rstrip('.')}"
