"""Errors that only a WebDAV server causes."""

from __future__ import annotations

from podferry.contract.errors import AccessDenied, Corrupt, InvalidSpec, Unavailable
from podferry.contract.uri import Uri


def no_webdav(uri: Uri, measured: str) -> InvalidSpec:
    """The error for a server that responds, but not as WebDAV."""
    what = f"the server does not respond as a WebDAV server for {uri}"
    remedy = "Check the address and its path; a web server without WebDAV is http:// or https://"
    return InvalidSpec.of(what, measured, remedy)


def no_size(uri: Uri) -> InvalidSpec:
    """The error for a file without a size."""
    what = f"the server does not state the size of {uri}"
    return InvalidSpec.of(what, "no getcontentlength", "Exclude the file, or copy it to another store")


def elsewhere(uri: Uri, measured: str) -> Corrupt:
    """The error for a listing with members of another directory."""
    what = f"the server lists what is not directly in {uri}"
    return Corrupt.of(what, measured, "Use the server's own address: a proxy may have changed the path")


def unlisted(uri: Uri, status: int) -> Unavailable:
    """The error for a member of a directory that has a status in the place of properties."""
    what = f"{uri} is listed and cannot be opened"
    return Unavailable.of(what, f"HTTP {status}", "Give permission to read it, or remove it")


def broken_off(uri: Uri, measured: str) -> Unavailable:
    """The error for a listing that the server does not finish."""
    what = f"the server has failed while it listed {uri}"
    return Unavailable.of(what, measured, "Try again; files there may change all the time")


def not_stored(uri: Uri, stored: int, sent: int) -> Unavailable:
    """The error for an upload that the server has cut."""
    what = f"the server has not stored all of {uri}"
    if not stored:  # PHP behind FastCGI gets no body whose length is not known before its end
        remedy = (
            "Have the server take bodies in chunks: PHP-FPM needs a web server that collects them "
            "(nginx: `fastcgi_request_buffering on`)"
        )
        return Unavailable.of(what, f"0 of {sent} bytes", remedy)
    return Unavailable.of(what, f"{stored} of {sent} bytes", "Try again")


def not_written(directory: Uri, measured: str) -> Unavailable:
    """The error for a server that fails while it writes a file."""
    what = f"the server has failed to store a file in {directory}"
    remedy = "Free space there if its disk is full, or see the server's log; uploads are retried until then"
    return Unavailable.of(what, measured, remedy)


def not_allowed(directory: Uri, what: str, measured: str) -> AccessDenied:
    """The error for a server that is read-only; `what` is `files` or `directories`."""
    sentence = f"the server does not allow {what} to be created in {directory}"
    remedy = (
        "Allow it: the server may be read-only (rclone: serve without --read-only), or its user may not "
        "write there"
    )
    return AccessDenied.of(sentence, measured, remedy)


def removed(directory: Uri, measured: str) -> Unavailable:
    """The error for a directory that is gone when a file is written to it."""
    what = f"the directory {directory} was removed while a file was written to it"
    return Unavailable.of(what, measured, "Try again")


def not_directory(path: Uri) -> InvalidSpec:
    """The error for a file where a directory must be."""
    return InvalidSpec.of(
        f"{path} is no directory", "a file", "Remove the file, or choose another destination"
    )


def not_exclusive(uri: Uri, measured: str) -> InvalidSpec:
    """The error for a server that cannot hold a commit."""
    what = f"the server does not keep two writers apart: checkpoints are not safe at {uri}"
    return InvalidSpec.of(what, measured, "Store checkpoints elsewhere; datasets and outputs may stay here")


def changed_name(uri: Uri) -> InvalidSpec:
    """The error for a server that would store a file under another name."""
    what = f"the server cannot store the name of {uri}"
    measured = "it cuts the target of a MOVE at ? or ;"
    return InvalidSpec.of(what, measured, "Rename the file and its directories, or use another store")
