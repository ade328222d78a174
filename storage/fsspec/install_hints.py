"""Says which package of fsspec to install for a scheme."""

from __future__ import annotations

from fsspec.registry import known_implementations, registry

from podferry.contract.errors import UnknownScheme
from podferry.contract.uri import Uri

EXTRAS = {
    "gs": "gcs",
    "gcs": "gcs",
    "s3": "s3fs",
    "s3a": "s3fs",
}
"""podferry's extra that installs the fsspec package of a scheme."""


def is_known(scheme: str) -> bool:
    """Whether fsspec knows a package for the scheme, installed or not."""
    return scheme in known_implementations or scheme in registry


def missing_package(uri: Uri) -> UnknownScheme:
    """The error for a scheme whose fsspec package is not installed, with the command to run."""
    extra = EXTRAS.get(uri.scheme)
    remedy = f"Run: pip install 'podferry[{extra}]'" if extra else _fsspec_hint(uri.scheme)
    return UnknownScheme.of(f"no engine for {uri.scheme}:// is installed", str(uri), remedy)


def _fsspec_hint(scheme: str) -> str:
    known = known_implementations.get(scheme, {"class": "fsspec", "err": "its package needs"})
    package = known["class"].partition(".")[0]
    if package != "fsspec":
        return f"Run: pip install {package}"
    return f"Install what fsspec needs for it: {str(known.get('err', '')).rstrip('.')}"
