"""The one place that turns vendors' exceptions into podferry's error tree, and writes what the user reads.

`podferry.storage.errors.kinds` says what happened; `rules` and `credential_rules` have the error and its
words, and this module combines them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from podferry.contract.errors import Corrupt, CredentialsMissing, FerryError, Problem, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.errors.credential_rules import (
    CREDENTIAL_ERRORS,
    NO_CREDENTIALS_REMEDIES,
    OTHER_CREDENTIALS_REMEDY,
)
from podferry.storage.errors.rules import CONNECTION_ERRORS, ERRORS, SCHEMES_WITH_TLS
from podferry.storage.network.settings import NETWORK_KEYS, Network

if TYPE_CHECKING:
    from podferry.storage.errors.vendor_fields import VendorFields

WEB_SCHEMES = ("http", "https", "webdav", "webdavs", "hf")
"""Their servers have no codes of errors."""
MAX_UNUSED_SHOWN = 10
UNAUTHORIZED = 401
"""No credentials, or wrong ones. Source: RFC 9110, section 15.5.2."""


class StoreLocation(msgspec.Struct, frozen=True):
    """What an error says about the store; local files have no endpoint.

    Attributes:
        uri: Of the store.
        endpoint: Its URL.
        credentials: Names of the variables or keys that were read, without their values.
        proxy: The proxy's URL without its password; empty without one.
        trusted: Where the certificates come from that are trusted in addition to the system's.
        unused: Names of a Secret's keys that mean nothing to this store.
    """

    uri: Uri
    endpoint: str = ""
    credentials: tuple[str, ...] = ()
    proxy: str = ""
    trusted: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """The endpoint, or the URI if there is none, and the proxy."""
        address = f"endpoint {self.endpoint}" if self.endpoint else f"{self.uri}"
        return f"{address}; proxy {self.proxy}" if self.proxy else address


def store_location(
    uri: Uri, endpoint: str, credentials: tuple[str, ...], network: Network, unused: tuple[str, ...] = ()
) -> StoreLocation:
    """The location of a store that is reached with these network settings."""
    proxy = network.proxies.proxy_for(endpoint)
    return StoreLocation(uri, endpoint, credentials, str(proxy) if proxy else "", network.ca.names, unused)


def unused_keys(
    credentials: Mapping[str, str], read: Sequence[str], of_secret: Callable[[], Mapping[str, str]] | None
) -> tuple[str, ...]:
    """Names of a Secret's keys that are none of a vendor's.

    Args:
        credentials: All of them.
        read: The vendor's.
        of_secret: Reads them again; None for the environment, which has hundreds of others.
    """
    return () if of_secret is None else tuple(sorted(set(credentials) - {*read, *NETWORK_KEYS}))


def credentials_read(read: Sequence[str], unused: Sequence[str] = ()) -> str:
    """Which credentials were read, and keys of the Secret that mean nothing to the store: for messages."""
    found = f"read: {', '.join(read)}" if read else "no credentials were read"
    return f"{found}; unknown keys of the Secret: {', '.join(unused[:MAX_UNUSED_SHOWN])}" if unused else found


def translate(
    error: BaseException,
    location: StoreLocation,
    name: str = "",
    operation: str = "",
    *,
    answered: bool = False,
) -> FerryError:
    """The error for a vendor's exception; raise it `from` the exception.

    Args:
        error: What the engine raised.
        location: Of the store.
        name: Of the object, relative to the store; empty for a listing.
        operation: The operation that failed: for local files `created`, `written`, `read` or `removed`; for
            object stores `listed`, as the permission to read does not include it.
        answered: Whether the store has responded before: then a connection that fails is an outage.
    """
    if isinstance(error, FerryError):
        return error
    # Imported here, as below: what reads exceptions takes longer to load than a small download, without any.
    from podferry.storage.errors.filesystem import filesystem_error  # noqa: PLC0415
    from podferry.storage.errors.kinds import error_kind  # noqa: PLC0415
    from podferry.storage.errors.vendor_fields import vendor_fields_of  # noqa: PLC0415

    fields = vendor_fields_of(error)
    kind = error_kind(fields)
    if fields.status == UNAUTHORIZED and location.uri.scheme in WEB_SCHEMES:
        kind = "wrong credentials" if location.credentials else "credentials"
    if location.uri.scheme == "file" and isinstance(error, OSError):
        # If a directory cannot be created, only the exception has the part of the path that failed.
        path = (error.filename if operation == "created" else "") or f"/{(location.uri / name).key}"
        return filesystem_error(kind, error, Path(path), operation)
    if kind == "region" and fields.region:
        return wrong_region(location, fields.region, _evidence(fields))
    if is_from_role(fields, location):
        return _role_error(kind, fields, location, name)
    if (kind, operation) == ("denied", "listed"):
        kind = "list denied"
    found = store_error(kind, location, name, _evidence(fields))
    return Unavailable(*found.problems) if answered and kind in CONNECTION_ERRORS else found


@contextlib.contextmanager
def translating(
    location: StoreLocation, name: str = "", operation: str = "", *, answered: bool = False
) -> Iterator[None]:
    """Translate what the block raises. Programming errors and cancellations pass unchanged."""
    try:
        yield
    except FerryError:
        raise
    except Exception as error:  # engines may raise anything
        from podferry.storage.errors.vendor_fields import is_programming_error  # noqa: PLC0415

        if is_programming_error(error):
            raise
        raise translate(error, location, name, operation, answered=answered) from error


def is_from_role(fields: VendorFields, location: StoreLocation) -> bool:
    """Whether not the store failed, but the service of a role, which has the credentials for it."""
    host, store = (urlsplit(url).hostname or "" for url in (fields.url, location.endpoint))
    return bool(host and store) and host != store and not host.endswith(f".{store}")


def _role_error(kind: str, fields: VendorFields, location: StoreLocation, name: str) -> FerryError:
    """The error for the service of a role: what it refuses is not refused by the store."""
    service = urlsplit(fields.url)
    evidence = f"{service.scheme}://{service.netloc}: {_evidence(fields)}"
    refused = 400 <= fields.status < 500 and kind not in {"throttled", "unreachable", "expired", "clock"}
    by_kind = {"unreachable": "role"}
    return store_error("no role" if refused else by_kind.get(kind, kind), location, name, evidence)


def _evidence(fields: VendorFields) -> str:
    status = f"HTTP {fields.status}" if fields.status else ""
    said = " ".join(part for part in (status, fields.code) if part) or fields.reason or fields.type
    return f"{said}, {fields.detail}" if fields.detail else said


def store_error(kind: str, location: StoreLocation, name: str = "", evidence: str = "") -> FerryError:
    """The error for a kind, with its message."""
    subject = str(location.uri / name) if name else str(location.uri)
    measured = [evidence, location.address]
    remedy = ""
    if kind in CREDENTIAL_ERRORS:
        rule = CREDENTIAL_ERRORS[kind]
        is_missing = rule.error is CredentialsMissing or not location.credentials
        measured.append(credentials_read(location.credentials, location.unused if is_missing else ()))
        remedy = "" if rule.remedy else _credentials_remedy(location.uri.scheme)
    elif kind in CONNECTION_ERRORS:
        rule = CONNECTION_ERRORS[kind]
        remedy = _with_tls_schemes(rule.remedy, location.uri.scheme)
        if kind == "untrusted":
            measured.append(f"trusted: {', '.join(('the system', *location.trusted))}")
    else:
        rule = ERRORS.get(kind, ERRORS["unreachable"])
        subject = str(location.uri.root) if kind == "bucket" else subject
        if kind == "invalid" and location.uri.scheme in WEB_SCHEMES:
            remedy = "Check the address and the name; the server's log may have the reason"
    problem = Problem(rule.sentence.format(subject), "; ".join(filter(None, measured)), remedy or rule.remedy)
    return rule.error(problem)


def _with_tls_schemes(remedy: str, scheme: str) -> str:
    """The remedy with the names of the scheme with and without TLS."""
    pairs = SCHEMES_WITH_TLS.items()
    plain, private = next((pair for pair in pairs if scheme in pair), ("http", "https"))
    return remedy.replace("{plain}", plain).replace("{private}", private)


def _credentials_remedy(scheme: str) -> str:
    known = {**dict.fromkeys(("s3", "s3a"), "s3"), "bos": "bos", "gcs": "gs", "gs": "gs", "oss": "oss"}
    known.update(dict.fromkeys(("az", "abfs", "abfss", "azure"), "az"))
    known.update({"https": "http", "webdavs": "webdav"}, http="http", webdav="webdav", hf="hf")
    return NO_CREDENTIALS_REMEDIES.get(known.get(scheme, ""), OTHER_CREDENTIALS_REMEDY)


def wrong_region(location: StoreLocation, region: str, evidence: str = "") -> FerryError:
    """The error for a bucket in another region than the configured one."""
    rule = ERRORS["region"]
    measured = "; ".join(part for part in (f"it is in {region}", evidence, location.address) if part)
    variable = "BOS_REGION" if location.uri.scheme == "bos" else "AWS_REGION"
    remedy = f"Set the region {region}: --region, podferry.io/region or {variable}"
    return rule.error(Problem(rule.sentence.format(location.uri), measured, remedy))


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


def too_long(location: StoreLocation, name: str, size: int) -> Corrupt:
    """The error for a file that continues behind its size: of a server that is wrong, or in `/proc`."""
    what, measured = f"{location.uri / name} continues behind its size", f"more than {size} bytes"
    return Corrupt.of(what, f"{measured}; {location.address}", "Copy it to another file, or exclude it")
