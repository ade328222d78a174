"""Reads a vendor's exception as plain values, by its type and attributes, without the vendor's package.

Only `obstore_fields` parses text: obstore reports an HTTP error as one string, whose debug form ends with
`inner: Status { status: 404, body: Some("<Error><Code>…") }`. It has the status, and the `<Code>` element
that both S3 and Azure send. If there was no response, the string ends with
`inner: Http(HttpError { kind: Connect, source: … Os { code: 111, … } })`: the kind and the system's error
number only go into the message, and decide nothing.
"""

from __future__ import annotations

import errno
import ftplib
import os
import re
from collections.abc import Iterator

import msgspec
from obstore import exceptions as obstore

STATUS_PATTERN = re.compile(r"\binner: Status \{\s*status: (\d{3}),")
CODE_PATTERN = re.compile(r"<Code>([A-Za-z0-9]{1,64})</Code>")
HTTP_ERROR_PATTERN = re.compile(r"\binner: Http\(\s*HttpError \{\s*kind: (\w+),")
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
            `unsupported`, or empty if the type does not say.
        status: HTTP status, or 0.
        code: The vendor's code, such as `NoSuchBucket`, or empty.
        type: Name of the exception's type.
        reason: Why there was no response, such as `connection refused`, or which key cannot be listed; empty
            if unknown.
    """

    kind: str = ""
    status: int = 0
    code: str = ""
    type: str = ""
    reason: str = ""


KIND_BY_OBSTORE_TYPE: dict[type[BaseException], str] = {
    FileNotFoundError: "missing",
    obstore.AlreadyExistsError: "exists",
    obstore.PreconditionError: "changed",
    obstore.PermissionDeniedError: "denied",
    obstore.UnauthenticatedError: "denied",
    obstore.InvalidPathError: "name",
    obstore.NotSupportedError: "unsupported",
    obstore.UnknownConfigurationKeyError: "unsupported",
}

KIND_BY_OS_TYPE: dict[type[OSError], str] = {
    FileNotFoundError: "missing",
    NotADirectoryError: "missing",
    IsADirectoryError: "missing",
    FileExistsError: "exists",
    PermissionError: "denied",
}
"""Libraries also raise these without an error number."""

KIND_BY_ERRNO = {
    errno.EROFS: "denied",
    **dict.fromkeys((errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ELOOP), "name"),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "full"),
    **dict.fromkeys((errno.EOPNOTSUPP, errno.ENOSYS), "unsupported"),
}
"""Every other number is `unreachable`: timeouts, resets, stale handles, input and output errors."""

KIND_BY_CLASS_NAME = {
    "botocore.exceptions.NoCredentialsError": "credentials",
    "botocore.exceptions.PartialCredentialsError": "credentials",
    "botocore.exceptions.ParamValidationError": "name",
    "google.auth.exceptions.DefaultCredentialsError": "credentials",
    "google.auth.exceptions.RefreshError": "denied",
    "azure.core.exceptions.ResourceNotFoundError": "missing",
    "azure.core.exceptions.ResourceExistsError": "exists",
    "azure.core.exceptions.ResourceModifiedError": "changed",
    "azure.core.exceptions.ClientAuthenticationError": "denied",
    "paramiko.ssh_exception.AuthenticationException": "denied",
    "paramiko.ssh_exception.BadHostKeyException": "denied",
    "smbprotocol.exceptions.SMBAuthenticationError": "denied",
}
"""By the qualified name of a base class of the exception, so that no package has to be installed."""

KIND_BY_FTP_REPLY = {"530": "denied", "532": "denied", "550": "missing", "552": "full", "553": "name"}
"""RFC 959, section 4.2.2: the three digits that begin a reply; 550 does not only mean a missing file."""

PROGRAMMING_ERRORS = (TypeError, AttributeError, NameError, AssertionError, LookupError, ImportError)


def vendor_fields_of(error: BaseException) -> VendorFields:
    """What an exception and its causes say; for each field the outermost exception that has it wins."""
    found = [_fields(link) for link in _causes(error)]
    return VendorFields(
        next((fields.kind for fields in found if fields.kind), ""),
        next((fields.status for fields in found if fields.status), 0),
        next((fields.code for fields in found if fields.code), ""),
        type(error).__name__,
        next((fields.reason for fields in found if fields.reason), ""),
    )


def is_programming_error(error: BaseException) -> bool:
    """Whether the exception shows a bug of the program; it is not translated."""
    return isinstance(error, PROGRAMMING_ERRORS)


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
        return VendorFields(KIND_BY_FTP_REPLY.get(str(error)[:3], "unreachable"))
    bases = (f"{base.__module__}.{base.__qualname__}" for base in type(error).__mro__)
    kind = next((KIND_BY_CLASS_NAME[base] for base in bases if base in KIND_BY_CLASS_NAME), "")
    if not kind and isinstance(error, OSError):
        kind = _os_kind(error)
    elif not kind and isinstance(error, ValueError):
        kind = "name"
    return VendorFields(kind, _status(error), _code(error), reason=_reason(error))


def obstore_fields(error: BaseException) -> VendorFields:
    """The kind by type; status, code and reason from the text: see the module's docstring."""
    text = str(error)
    status, code, key = (
        STATUS_PATTERN.search(text),
        CODE_PATTERN.search(text),
        INVALID_KEY_PATTERN.search(text),
    )
    if key is not None:
        return VendorFields("key", reason=f"the key {key[1][:200]}")
    return VendorFields(
        KIND_BY_OBSTORE_TYPE.get(type(error), ""),
        int(status[1]) if status else 0,
        code[1] if code else "",
        reason=_http_reason(text),
    )


def _http_reason(text: str) -> str:
    found = HTTP_ERROR_PATTERN.search(text)
    if found is None:
        return ""
    number = OS_CODE_PATTERN.search(text, found.end())
    return os.strerror(int(number[1])).lower() if number else HTTP_ERROR_REASONS.get(found[1], "")


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return HTTP_ERROR_REASONS["Timeout"]
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    return ""


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
    response = getattr(error, "response", None)
    found: list[object] = [getattr(error, name, None) for name in ("status", "status_code", "code")]
    found.append(getattr(response, "status_code", None))
    if isinstance(response, dict):
        found.append(response.get("ResponseMetadata", {}).get("HTTPStatusCode"))
    return next((int(str(value)) for value in found if _is_status(value)), 0)


def _is_status(value: object) -> bool:
    return isinstance(value, int | str) and str(value).isdecimal() and 100 <= int(value) <= 599


def _code(error: BaseException) -> str:
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        code = response.get("Error", {}).get("Code", "")
    else:
        code = getattr(error, "error_code", "")
    return code if isinstance(code, str) and code.isalnum() and not code.isdecimal() else ""
