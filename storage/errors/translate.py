"""The one place where vendors' exceptions become podferry's error tree.

`podferry.storage.errors.vendor_fields` says what an exception holds: the vendor's code first, then its type,
then the HTTP status. This module chooses the error and writes what the user reads.
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
from podferry.contract.uri import Uri
from podferry.storage.errors.filesystem import filesystem_error
from podferry.storage.errors.vendor_fields import VendorFields, is_programming_error, vendor_fields_of

KIND_BY_CODE = {
    **dict.fromkeys(("NoSuchBucket", "ContainerNotFound", "InvalidBucketName", "AccountNotFound"), "bucket"),
    **dict.fromkeys(("NoSuchKey", "BlobNotFound"), "missing"),
    **dict.fromkeys(("BlobAlreadyExists",), "exists"),
    **dict.fromkeys(
        ("AccessDenied", "AllAccessDisabled", "AccountProblem", "AuthorizationPermissionMismatch"), "denied"
    ),
    **dict.fromkeys(
        (
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "InvalidToken",
            "InvalidSecurity",
            "AuthenticationFailed",
            "AuthorizationFailure",
            "InvalidAuthenticationInfo",
            "XAdminUserNotFound",  # versitygw: 404 for an access key that it does not know
        ),
        "wrong credentials",
    ),
    **dict.fromkeys(
        ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"), "expired"
    ),
    "RequestTimeTooSkewed": "clock",
    **dict.fromkeys(
        ("SlowDown", "TooManyRequests", "ThrottlingException", "RequestLimitExceeded", "ServerBusy"),
        "throttled",
    ),
    **dict.fromkeys(
        ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"), "region"
    ),
    "InvalidRange": "range",
    **dict.fromkeys(
        (
            "ConditionalRequestConflict",  # S3: another conditional write is under way; obstore: 409, exists
            "OperationAborted",
            "RequestTimeout",
            "InternalError",
            "ServiceUnavailable",
            "OperationTimedOut",
        ),
        "unreachable",
    ),
    "QuotaExceeded": "full",
    "NotImplemented": "unsupported",
    **dict.fromkeys(
        (
            "BadDigest",
            "IncompleteBody",
            "XAmzContentChecksumMismatch",
            "XAmzContentSHA256Mismatch",
            "XAmzContentSha256Mismatch",
        ),
        "damaged",
    ),
}
"""Sources: "Error responses" of Amazon's S3 API reference, "Blob service error codes" of Azure Storage."""

KIND_BY_STATUS = {
    301: "region",
    307: "region",
    401: "denied",
    403: "denied",
    404: "missing",
    408: "unreachable",
    412: "changed",
    416: "range",
    429: "throttled",
    501: "unsupported",
    507: "full",
}


class StoreLocation(msgspec.Struct, frozen=True):
    """What an error says about where it happened.

    Attributes:
        uri: The store's.
        endpoint: Address of the service, empty for local files.
        credentials: Names of the variables or keys that were read, without values.
    """

    uri: Uri
    endpoint: str = ""
    credentials: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """The address, in words."""
        return f"endpoint {self.endpoint}" if self.endpoint else f"{self.uri}"


def error_kind(signal: VendorFields) -> str:
    """What happened, in one word: code, then type, then status; `unreachable` where nothing is said."""
    by_status = KIND_BY_STATUS.get(signal.status, "")
    if not by_status and 400 <= signal.status < 500:
        by_status = "invalid"
    return KIND_BY_CODE.get(signal.code) or signal.kind or by_status or "unreachable"


def translate(error: BaseException, location: StoreLocation, name: str = "", done: str = "") -> FerryError:
    """The error of the tree that a vendor's exception stands for; raise it `from` the exception.

    Args:
        error: What the engine raised.
        location: Where.
        name: The object that was asked for, relative to the store; empty for a listing.
        done: For local files, what was to be done: `made`, `written`, `read`, `removed`.
    """
    if isinstance(error, FerryError):
        return error
    signal = vendor_fields_of(error)
    if location.uri.scheme == "file" and isinstance(error, OSError):
        # Of a directory that cannot be made only the exception knows which part of the path it is.
        path = error.filename if done == "made" and error.filename else f"/{(location.uri / name).key}"
        return filesystem_error(error_kind(signal), error, Path(path), done)
    return store_error(error_kind(signal), location, name, _evidence(signal))


@contextlib.contextmanager
def translating(location: StoreLocation, name: str = "", done: str = "") -> Iterator[None]:
    """Translate what the block raises. Defects of the program and cancellations pass as they are."""
    try:
        yield
    except FerryError:
        raise
    except Exception as error:  # engines may raise anything; this is where it becomes the error tree
        if is_programming_error(error):
            raise
        raise translate(error, location, name, done) from error


def _evidence(signal: VendorFields) -> str:
    status = f"HTTP {signal.status}" if signal.status else ""
    return " ".join(part for part in (status, signal.code) if part) or signal.reason or signal.type


def store_error(kind: str, location: StoreLocation, name: str = "", evidence: str = "") -> FerryError:
    """The error for a kind, with its problem."""
    what = str(location.uri / name) if name else str(location.uri)
    keys = ", ".join(location.credentials)
    measured = "; ".join(part for part in (evidence, location.address) if part)
    if kind in CREDENTIAL_ERRORS:
        error, sentence, remedy = CREDENTIAL_ERRORS[kind]
        read = f"read: {keys}" if keys else "no credentials were read"
        return error(Problem(sentence.format(what), f"{measured}; {read}", remedy))
    error, sentence, remedy = ERRORS.get(kind, ERRORS["unreachable"])
    subject = str(location.uri.root) if kind == "bucket" else what
    return error(Problem(sentence.format(subject), measured, remedy))


_Rule = tuple[type[FerryError], str, str]

CREDENTIAL_ERRORS: dict[str, _Rule] = {
    "denied": (AccessDenied, "the store refuses access to {}", "Give these credentials the permission"),
    "wrong credentials": (
        AccessDenied,
        "the store does not accept the credentials for {}",
        "Check that key and secret belong together, to this endpoint, and have not expired",
    ),
    "expired": (
        Unavailable,  # they are renewed by others: the same call may succeed then
        "the credentials for {} have expired",
        "Renew the Secret, or check the role's service; requests are repeated until they are renewed",
    ),
    "clock": (
        AccessDenied,
        "the store refuses the request's time for {}",
        "Set the clock of this machine: it differs from the store's by more than 15 minutes",
    ),
    "credentials": (
        CredentialsMissing,
        "there are no credentials for {}",
        (
            "Set them in the environment or in the Secret (for S3 AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, for Azure AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY), "
            "or AWS_SKIP_SIGNATURE=true or AZURE_SKIP_SIGNATURE=true for public data"
        ),
    ),
}

ERRORS: dict[str, _Rule] = {
    "missing": (NotFound, "there is no object {}", "Check the name"),
    "bucket": (
        BucketNotFound,
        "there is no bucket {}",
        "Check the bucket's name, and that the endpoint is the one that holds it",
    ),
    "exists": (AlreadyExists, "{} exists already", "Choose another name, or look at what is there"),
    "changed": (Changed, "{} is no longer the object that was listed", "List it again"),
    "throttled": (Throttled, "the store asks for fewer requests for {}", "Try again later"),
    "unreachable": (
        Unavailable,
        "the store does not answer for {}",
        "Check the endpoint's address and the network, or try again later",
    ),
    "damaged": (Unavailable, "bytes of {} did not arrive as they were sent", "Try again"),
    "region": (
        InvalidSpec,
        "the bucket of {} lies in another region than the one that was asked",
        "Set the bucket's region, or its endpoint",
    ),
    "range": (Corrupt, "{} ends before the bytes that were asked for", "List it again"),
    "name": (
        InvalidSpec,
        "the store does not take the name {}",
        "Rename or exclude what it stands for; keys need non-empty parts without control characters",
    ),
    "key": (
        Corrupt,
        "a key below {} is no name of a file, and the listing ends there",
        "Rename it at its source, or leave it out with `exclude` and ?engine=fsspec",
    ),
    "full": (Unavailable, "there is no room left to write {}", "Free space at the destination"),
    "unsupported": (
        InvalidSpec,
        "the store cannot do what {} asks for",
        "Use another engine or another place",
    ),
    "invalid": (
        InvalidSpec,
        "the store takes the request for {} as malformed",
        "Check the endpoint, the region and the name",
    ),
}
