"""The one place that turns vendors' exceptions into podferry's error tree, and writes what the user reads.

`podferry.storage.errors.kinds` says what happened; this module chooses the error and its message.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from podferry.contract.errors import (
    AccessDenied,
    AlreadyExists,
    BucketNotFound,
    Changed,
    Corrupt,
    CredentialsMissing,
    FerryError,
    InvalidSpec,
    NotFound,
    Problem,
    Throttled,
    Unavailable,
)
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.errors.filesystem import filesystem_error
from podferry.storage.errors.kinds import error_kind
from podferry.storage.errors.vendor_fields import VendorFields, is_programming_error, vendor_fields_of


class StoreLocation(msgspec.Struct, frozen=True):
    """What an error says about the store; local files have no endpoint.

    `credentials` are names of the variables or keys that were read, without their values.
    """

    uri: Uri
    endpoint: str = ""
    credentials: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """The endpoint, or the URI if there is none."""
        return f"endpoint {self.endpoint}" if self.endpoint else f"{self.uri}"


def translate(
    error: BaseException, location: StoreLocation, name: str = "", operation: str = ""
) -> FerryError:
    """The error for a vendor's exception; raise it `from` the exception.

    Args:
        error: What the engine raised.
        location: Of the store.
        name: Of the object, relative to the store; empty for a listing.
        operation: For local files, the operation that failed: `created`, `written`, `read` or `removed`.
    """
    if isinstance(error, FerryError):
        return error
    fields = vendor_fields_of(error)
    kind = error_kind(fields)
    if location.uri.scheme == "file" and isinstance(error, OSError):
        # If a directory cannot be created, only the exception has the part of the path that failed.
        path = (error.filename if operation == "created" else "") or f"/{(location.uri / name).key}"
        return filesystem_error(kind, error, Path(path), operation)
    return store_error(kind, location, name, _evidence(fields))


@contextlib.contextmanager
def translating(location: StoreLocation, name: str = "", operation: str = "") -> Iterator[None]:
    """Translate what the block raises. Programming errors and cancellations pass unchanged."""
    try:
        yield
    except FerryError:
        raise
    except Exception as error:  # engines may raise anything
        if is_programming_error(error):
            raise
        raise translate(error, location, name, operation) from error


def _evidence(fields: VendorFields) -> str:
    status = f"HTTP {fields.status}" if fields.status else ""
    return " ".join(part for part in (status, fields.code) if part) or fields.reason or fields.type


def store_error(kind: str, location: StoreLocation, name: str = "", evidence: str = "") -> FerryError:
    """The error for a kind, with its message."""
    subject = str(location.uri / name) if name else str(location.uri)
    measured = "; ".join(part for part in (evidence, location.address) if part)
    if kind in CREDENTIAL_ERRORS:
        error, sentence, remedy = CREDENTIAL_ERRORS[kind]
        keys = ", ".join(location.credentials)
        measured = f"{measured}; {f'read: {keys}' if keys else 'no credentials were read'}"
    else:
        error, sentence, remedy = ERRORS.get(kind, ERRORS["unreachable"])
        subject = str(location.uri.root) if kind == "bucket" else subject
    return error(Problem(sentence.format(subject), measured, remedy))


def check_listed(location: StoreLocation, found: Entry, tag: str, size: int | None) -> None:
    """Compare an object with what was listed: its tag unless empty, its size unless None.

    Raises:
        Changed: They differ.
    """
    if tag and found.tag != tag:
        raise store_error("changed", location, found.name, f"tag {found.tag}, was {tag}")
    if size not in {None, found.size}:
        raise store_error("changed", location, found.name, f"{found.size} bytes, {size} were listed")


def too_short(location: StoreLocation, name: str, start: int, length: int | None, found: str) -> FerryError:
    """The error for a read past the end of an object; `found` says how much there is."""
    requested = f"requested {'the rest' if length is None else length} from {start}"
    return store_error("range", location, name, f"{found}; {requested}")


_Rule = tuple[type[FerryError], str, str]

CREDENTIAL_ERRORS: dict[str, _Rule] = {
    "denied": (AccessDenied, "the store denies access to {}", "Grant these credentials the permission"),
    "wrong credentials": (
        AccessDenied,
        "the store rejects the credentials for {}",
        "Check that key and secret match, belong to this endpoint, and have not expired",
    ),
    "expired": (
        Unavailable,  # something else renews them: then the same call may succeed
        "the credentials for {} have expired",
        "Renew the Secret, or check the service of the role; requests are retried until then",
    ),
    "clock": (
        AccessDenied,
        "the store rejects the time of the request for {}",
        "Set the clock of this machine: it differs from the store's by more than 15 minutes",
    ),
    "credentials": (
        CredentialsMissing,
        "there are no credentials for {}",
        (
            "Set them in the environment or in the Secret (for S3 AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, for Azure AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY), "
            "or for public data AWS_SKIP_SIGNATURE=true or AZURE_SKIP_SIGNATURE=true"
        ),
    ),
}

ERRORS: dict[str, _Rule] = {
    "missing": (NotFound, "there is no object {}", "Check the name"),
    "bucket": (BucketNotFound, "there is no bucket {}", "Check the name of the bucket, and the endpoint"),
    "exists": (AlreadyExists, "{} already exists", "Choose another name, or inspect the existing object"),
    "changed": (Changed, "{} has changed since it was listed", "List it again"),
    "throttled": (Throttled, "the store limits the rate of requests for {}", "Try again later"),
    "unreachable": (
        Unavailable,
        "the store does not respond for {}",
        "Check the endpoint's address and the network, or try again later",
    ),
    "damaged": (Unavailable, "the data of {} was damaged in transit", "Try again"),
    "region": (
        InvalidSpec,
        "the bucket of {} is not in the configured region",
        "Set the bucket's region, or its endpoint",
    ),
    "range": (Corrupt, "{} ends before the requested bytes", "List it again"),
    "name": (
        InvalidSpec,
        "the store does not accept the name {}",
        "Rename or exclude the file; keys need non-empty parts without control characters",
    ),
    "key": (
        Corrupt,
        "a key below {} is not a valid file name, and the listing stops there",
        "Rename it at its source, or skip it with `exclude` and ?engine=fsspec",
    ),
    "full": (Unavailable, "there is no space left to write {}", "Free space at the destination"),
    "unsupported": (
        InvalidSpec,
        "the store does not support this operation on {}",
        "Use another engine or another store",
    ),
    "invalid": (
        InvalidSpec,
        "the store rejects the request for {} as malformed",
        "Check the endpoint, the region and the name",
    ),
}
