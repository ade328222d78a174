"""The URI that a text is meant to be, where it is written as other programs write locations. Pure."""

from __future__ import annotations

import re

from podferry.contract.lazy_pattern import lazy_pattern
from podferry.contract.schemes import STORE_SCHEMES

MISSPELLED_URI = lazy_pattern(
    rf"({'|'.join((*STORE_SCHEMES, 'file'))})(?::|(?=//))([/\\]*)(.*)", re.IGNORECASE
)
"""A scheme with the wrong slashes or letters: no path on a command line begins so by intention."""
WINDOWS_SHARE = lazy_pattern(r"\\\\([^\\/]+[\\/].+)")
"""`\\\\HOST\\SHARE\\PATH`."""
BUCKET_ARN = lazy_pattern(r"arn:aws[a-z-]*:s3:::(.+)")
"""Source: Amazon S3, "Policy resources"."""
COPIED_HOST = lazy_pattern(r"([\w.-]+@)?(\w[\w.-]+|\[[0-9a-fA-F:]+\]):(.+)")
"""`USER@HOST:PATH`, as scp, rsync and mount write it; one letter is a drive of Windows."""


def corrected_uri(text: str) -> str | None:
    """The URI that `s3:/x`, `S3://x`, `user@host:/x` or a Windows share means; None for all else."""
    text = text.strip()
    if match := MISSPELLED_URI.fullmatch(text):
        return _with_slashes(text, *match.groups())
    if match := WINDOWS_SHARE.fullmatch(text):
        return "smb://" + match[1].replace("\\", "/")
    if match := BUCKET_ARN.fullmatch(text):
        return f"s3://{match[1]}"
    match = COPIED_HOST.fullmatch(text)
    return None if match is None else _copied(*match.groups())


def _with_slashes(text: str, scheme: str, slashes: str, rest: str) -> str | None:
    if not rest:
        return None
    if "\\" in slashes:
        rest = rest.replace("\\", "/")
    corrected = f"{scheme.lower()}://{'/' if scheme.lower() == 'file' else ''}{rest}"
    return None if corrected == text else corrected


def _copied(user: str | None, host: str, path: str) -> str | None:
    """A path without a slash is below the user's home; without a user as well, it is no location."""
    if path.startswith("/") and not path.startswith("//"):
        return f"sftp://{user or ''}{host}{path}"
    return f"sftp://{user}{host}/~/{path}" if user and not path.startswith("/") else None
