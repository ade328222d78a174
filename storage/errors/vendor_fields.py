"""Reads a vendor's exception as plain values, by its type and attributes, without the vendor's package.

Only `obstore_fields` parses text: obstore reports an HTTP error as one string, whose debug form ends with
`inner: Status { status: 404, body: Some("<Error><Code>…") }`. It has the status, and the `<Code>` element
that both S3 and Azure send. If there was no response, the string ends with
`inner: Http(HttpError { kind: Connect, source: … Os { code: 111, … } })`: the kind and the system's error
number only go into the message, and decide nothing.
"""

from __future__ import annotations

import ftplib
import os
import re
import ssl
from collections.abc import Iterator

import msgspec
from obstore import exceptions as obstore

from podferry.storage.errors.connection_failure import openssl_failure, rustls_failure
from podferry.storage.errors.exception_kinds import (
    KIND_BY_CLASS_NAME,
    KIND_BY_ERRNO,
    KIND_BY_FTP_REPLY,
    KIND_BY_OBSTORE_TYPE,
    KIND_BY_OS_TYPE,
)
from podferry.storage.errors.obstore_failure import described_failure
from podferry.storage.errors.response_body import read_response_body

STATUS_PATTERN = re.compile(r"\binner: Status \{\s*status: (\d{3}),")
HTTP_ERROR_PATTERN = re.compile(r"\binner: Http\(\s*HttpError \{\s*kind: (\w+),")
URL_PATTERN = re.compile(r"\buri: Some\(\s*(https?://[^\s,)]+)")
OS_CODE_PATTERN = re.compile(r"\bOs \{\s*code: (\d{1,5}),")
INVALID_KEY_PATTERN = re.compile(r"\bInvalidPath \{.*?\bpath: (\"(?:[^\"\\]|\\.)*\")", re.DOTALL)
"""The key that ended a listing, with Rust's quotation marks and escapes."""
HTTP_ERROR_REASONS = {
    "Connect": "no connection",
    "Timeout": "no response in time",
    "Interrupted": "connection broken",
    "Request": "request not sent",
    "Decode": "response not readable",
}
"""`HttpErrorKind` of object_store, the library that obstore wraps, except `Unknown`."""


class VendorFields(msgspec.Struct, frozen=True):
    """What an exception says.

    Attributes:
        kind: `missing`, `exists`, `changed`, `denied`, `credentials`, `unreachable`, `name`, `key`, `full`,
            `unsupported`, a kind of `podferry.storage.errors.connection_failure`, or empty if the type does
            not say.
        status: HTTP status, or 0.
        code: The vendor's code, such as `NoSuchBucket`, or empty.
        type: Name of the exception's type.
        reason: Why there was no response, such as `connection refused`, or which key cannot be listed; empty
            if unknown.
        detail: What else the response says that a user needs, such as the storage class.
        region: Where the bucket is, if the response says so.
        url: What was requested, if the exception says so.
    """

    kind: str = ""
    status: int = 0
    code: str = ""
    type: str = ""
    reason: str = ""
    detail: str = ""
    region: str = ""
    url: str = ""


FOREIGN_LINE_PATTERN = re.compile(r"""b(['"][^\\]{1,100}['"])$""", re.MULTILINE)
"""The line that aiohttp's `BadStatusLine` shows. A TLS alert is no text, and is escaped there."""
PARSER_MODULE = "aiohttp.http_exceptions"
"""Of errors about what a server sends; their HTTP status is aiohttp's own, not the server's."""
BROKEN_CONNECTIONS = ("ServerDisconnectedError",)
"""Of aiohttp."""
PROGRAMMING_ERRORS = (TypeError, AttributeError, NameError, AssertionError, LookupError, ImportError)


def vendor_fields_of(error: BaseException) -> VendorFields:
    """What an exception and its causes say; for each field the outermost exception that has it wins.

    A cause that explains why there is no connection says all: what was made of it is wrong, such as fsspec's
    `FileNotFoundError`.
    """
    failures = (openssl_failure(link) for link in _causes(error) if isinstance(link, ssl.SSLError))
    failure = next(filter(None, failures), None)
    if failure is not None:
        return VendorFields(failure.kind, type=type(error).__name__, reason=failure.reason)
    foreign = next(filter(None, map(_foreign_line, _causes(error))), "")
    if foreign:
        return VendorFields("not http", type=type(error).__name__, reason=foreign)
    found = [_fields(link) for link in _causes(error)]
    parsed = not any(type(link).__module__ == PARSER_MODULE for link in _causes(error))
    return VendorFields(
        next((fields.kind for fields in found if fields.kind), ""),
        next((fields.status for fields in found if fields.status), 0) if parsed else 0,
        next((fields.code for fields in found if fields.code), ""),
        type(error).__name__,
        next((fields.reason for fields in found if fields.reason), ""),
        next((fields.detail for fields in found if fields.detail), ""),
        next((fields.region for fields in found if fields.region), ""),
        next((fields.url for fields in found if fields.url), ""),
    )


def is_programming_error(error: BaseException) -> bool:
    """Whether the exception shows a bug of the program; it is not translated."""
    return isinstance(error, PROGRAMMING_ERRORS)


def _foreign_line(error: BaseException) -> str:
    """The first line of a server that does not speak HTTP, quoted; empty for any other error."""
    if greeting := getattr(error, "greeting", ""):
        return repr(greeting)
    is_foreign = (type(error).__module__, type(error).__name__) == (PARSER_MODULE, "BadStatusLine")
    line = FOREIGN_LINE_PATTERN.search(str(error)) if is_foreign else None
    return line[1] if line is not None else ""


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__


def _fields(error: BaseException) -> VendorFields:
    if isinstance(error, obstore.BaseError) or type(error) is FileNotFoundError:
        return obstore_fields(error)
    if isinstance(error, ftplib.Error):
        reply = str(error)
        return VendorFields(KIND_BY_FTP_REPLY.get(reply[:3], "unreachable"), reason=ascii(reply[:200])[1:-1])
    bases = (f"{base.__module__}.{base.__qualname__}" for base in type(error).__mro__)
    kind = next((KIND_BY_CLASS_NAME[base] for base in bases if base in KIND_BY_CLASS_NAME), "")
    if not kind and isinstance(error, OSError):
        kind = _os_kind(error)
    elif not kind and isinstance(error, ValueError):
        kind = "name"
    elif not kind and isinstance(error, NotImplementedError):
        kind = "unsupported"  # what fsspec raises where it cannot write
    return VendorFields(
        kind,
        _status(error),
        _code(error),
        reason=_reason(error),
        detail=getattr(error, "detail", ""),
        region=getattr(error, "region", ""),
    )


def obstore_fields(error: BaseException) -> VendorFields:
    """The kind by type; status, body and reason from the text: see the module's docstring."""
    text = str(error)
    key, status = INVALID_KEY_PATTERN.search(text), STATUS_PATTERN.search(text)
    if key is not None:
        return VendorFields("key", reason=f"the key {key[1][:200]}")
    if described := described_failure(text):
        return VendorFields(described.kind, described.status, described.code, reason=described.reason)
    failure = None if status else rustls_failure(text)
    if failure is not None:
        return VendorFields(failure.kind, reason=failure.reason, url=_url(text))
    body = read_response_body(text)
    return VendorFields(
        KIND_BY_OBSTORE_TYPE.get(type(error), ""),
        int(status[1]) if status else 0,
        body.code,
        reason=_http_reason(text),
        detail=body.detail,
        region=body.region,
        url=_url(text),
    )


def _url(text: str) -> str:
    found = URL_PATTERN.search(text)
    return found[1] if found else ""


def _http_reason(text: str) -> str:
    found = HTTP_ERROR_PATTERN.search(text)
    if found is None:
        return ""
    number = OS_CODE_PATTERN.search(text, found.end())
    return os.strerror(int(number[1])).lower() if number else HTTP_ERROR_REASONS.get(found[1], "")


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return HTTP_ERROR_REASONS["Timeout"]
    if type(error).__module__ == PARSER_MODULE:
        return HTTP_ERROR_REASONS["Decode"]
    if isinstance(error, OSError) and error.errno:
        # Negative numbers are those of name resolution, which have words of their own.
        return (os.strerror(error.errno) if error.errno > 0 else str(error.strerror or "")).lower()
    return HTTP_ERROR_REASONS["Interrupted"] if type(error).__name__ in BROKEN_CONNECTIONS else ""


def _os_kind(error: OSError) -> str:
    by_type = next((kind for base, kind in KIND_BY_OS_TYPE.items() if isinstance(error, base)), "")
    if type(error) is OSError and error.errno is None and _raised_in(error) == "gcsfs.retry":
        return "denied"  # the only plain OSError that gcsfs raises there means HTTP 403
    if by_type or error.errno is None:
        return by_type
    return KIND_BY_ERRNO.get(error.errno, "unreachable")


def _raised_in(error: BaseException) -> str:
    """Name of the module that raised the exception."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return str(trace.tb_frame.f_globals.get("__name__", "")) if trace is not None else ""


def _status(error: BaseException) -> int:
    return next((int(str(value)) for value in _statuses(error) if _is_status(value)), 0)


def _statuses(error: BaseException) -> Iterator[object]:
    values = (getattr(error, name, None) for name in ("status", "status_code", "code"))
    yield next((value for value in values if value is not None), None)  # aiohttp's `code` is deprecated
    response = getattr(error, "response", None)
    yield getattr(response, "status_code", None)
    if isinstance(response, dict):
        yield response.get("ResponseMetadata", {}).get("HTTPStatusCode")


def _is_status(value: object) -> bool:
    return isinstance(value, int | str) and str(value).isdecimal() and 100 <= int(value) <= 599


def _code(error: BaseException) -> str:
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        code = response.get("Error", {}).get("Code", "")
    else:
        code = getattr(error, "error_code", "")
    return code if isinstance(code, str) and code.replace(".", "").isalnum() and not code.isdecimal() else ""
