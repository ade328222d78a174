"""Which container of which account a URI names.

`abfss://container@account.dfs.core.windows.net/path` is Hadoop's and Azure's own form; podferry reads the
same container over the account's Blob endpoint. `az://container/path` leaves the account to the settings.
Sources: "Use the Azure Data Lake Storage URI", Microsoft Learn; "Azure Storage account endpoints".
"""

from __future__ import annotations

import re

import msgspec

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.lazy_pattern import lazy_pattern
from podferry.contract.uri import Uri

DOMAINS = "core.windows.net|core.chinacloudapi.cn|core.usgovcloudapi.net"
ACCOUNT_HOST = lazy_pattern(rf"([a-z0-9]{{3,24}})\.(blob|dfs|file)\.({DOMAINS})")
"""An account's host, of the services Blob, Data Lake and Files."""


class AzurePlace(msgspec.Struct, frozen=True):
    """A container; `account` and `endpoint` are empty if the URI leaves them to the settings."""

    container: str
    account: str = ""
    endpoint: str = ""


def azure_place(uri: Uri) -> AzurePlace:
    """The place that a URI names.

    Raises:
        InvalidSpec: It is spelled in another way; the message has the right one.
    """
    container, at, host = uri.bucket.rpartition("@")
    found = ACCOUNT_HOST.fullmatch(host)
    if not at:
        if found or "." in uri.bucket:
            raise InvalidSpec(_misspelled(uri, found))
        return AzurePlace(uri.bucket)
    if found is None or found[2] == "file" or not container or "@" in container:
        raise InvalidSpec(_misspelled(uri, found))
    return AzurePlace(container, found[1], f"https://{found[1]}.blob.{found[3]}")


def web_address_problem(uri: Uri) -> Problem | None:
    """Why the web address of an account is not opened as a web server: it has no index pages."""
    found = ACCOUNT_HOST.fullmatch(uri.bucket) if uri.scheme in ("http", "https") else None
    return _misspelled(uri, found) if found else None


def _misspelled(uri: Uri, found: re.Match[str] | None) -> Problem:
    what = "this is not how a container of Azure is written"
    if found is None:
        remedy = "Write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH or az://CONTAINER/PATH"
        return Problem(what, str(uri), remedy)
    account, service, domain = found.groups()
    if service == "file":
        remedy = (
            f"Write smb://{account}.file.{domain}/SHARE/PATH for Azure Files, or mount the share as a "
            "volume and name its claim"
        )
        return Problem("Azure Files is no container", str(uri), remedy)
    container, _, path = uri.key.partition("/")
    right = f"abfss://{container or 'CONTAINER'}@{account}.dfs.{domain}/{path}"
    remedy = f"Write {right}; for public data set AZURE_SKIP_SIGNATURE=true"
    return Problem(what, str(uri), remedy)
