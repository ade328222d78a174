"""Credentials of web servers: user and password, a bearer token, other header fields, or netrc.

They belong to the server of the URI: who sends them must not send them to any other.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.lazy_pattern import lazy_pattern
from podferry.storage.credentials.refresh import RefreshedValue
from podferry.storage.request_builder import is_printable_ascii
from podferry.storage.store import StoreConfig

NETRC = "netrc"
"""Key of a Secret with the content of a netrc file; that of the environment's own file is stored under it."""
BASIC_AUTH_KEYS = ("username", "password")
"""Of a Secret of the type kubernetes.io/basic-auth."""
SUFFIXES = ("USERNAME", "PASSWORD", "BEARER_TOKEN", "HEADERS")
"""Of the variables: `HTTP_USERNAME`, …"""
FIELD_NAME = lazy_pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110, section 5.1."""
OWN_FIELDS = frozenset(
    {"host", "range", "if-match", "if-none-match", "accept-encoding", "user-agent", "connection"}
    | {"content-length", "content-encoding", "content-type", "transfer-encoding", "te", "upgrade", "expect"}
    | {"depth", "destination", "overwrite"}
)
"""Fields that decide what a request means: podferry sets them."""


def web_variables(prefix: str) -> tuple[str, ...]:
    """Names of the variables with credentials of web servers; `prefix` is `HTTP_` or `WEBDAV_`."""
    return tuple(f"{prefix}{suffix}" for suffix in SUFFIXES)


def names_of_web_credentials(prefix: str, url: str, credentials: Mapping[str, str]) -> tuple[str, ...]:
    """Which keys and variables authenticate requests to a server, for messages.

    Raises:
        InvalidSpec: As `web_headers`.
    """
    known = (*web_variables(prefix), *BASIC_AUTH_KEYS, NETRC)
    return (
        tuple(name for name in known if credentials.get(name))
        if web_headers(prefix, url, credentials)
        else ()
    )


def without_web_credentials(credentials: Mapping[str, str]) -> dict[str, str]:
    """Credentials without those that any web server would receive; netrc names its hosts."""
    unbound = {*web_variables("HTTP_"), *web_variables("WEBDAV_"), *BASIC_AUTH_KEYS}
    return {name: value for name, value in credentials.items() if name not in unbound}


def web_headers(prefix: str, url: str, credentials: Mapping[str, str]) -> dict[str, str]:
    """The header fields that authenticate requests to a server, by name; empty without credentials.

    Args:
        prefix: Of the variables: `HTTP_` or `WEBDAV_`.
        url: Of the server.
        credentials: The variables; `username` and `password` of a Secret count if they are not set.

    Raises:
        InvalidSpec: They contradict each other, or cannot be sent.
    """
    user = credentials.get(f"{prefix}USERNAME") or credentials.get("username", "")
    password = credentials.get(f"{prefix}PASSWORD") or credentials.get("password", "")
    token = credentials.get(f"{prefix}BEARER_TOKEN", "")
    headers = _further_headers(f"{prefix}HEADERS", credentials.get(f"{prefix}HEADERS", ""))
    _check_one_of(prefix, bool(user or password), bool(token), "authorization" in map(str.lower, headers))
    if bool(user) != bool(password):
        missing = f"{prefix}{'USERNAME' if password else 'PASSWORD'}"
        raise InvalidSpec.of(f"{missing} is missing", "", "Set user and password, or none of them")
    if token:
        return {**headers, "Authorization": _checked(f"{prefix}BEARER_TOKEN", f"Bearer {token}")}
    if not user and "authorization" not in map(str.lower, headers):
        user, password = _netrc_login(credentials.get(NETRC, ""), urlsplit(url).hostname or "")
    return {**headers, "Authorization": _basic(user, password)} if user else headers


def refreshed_headers(prefix: str, url: str, config: StoreConfig) -> RefreshedValue[Mapping[str, str]]:
    """The fields of `web_headers`, read again if those of the store may change."""
    return RefreshedValue(lambda: _headers(prefix, url, config), lasting=config.reload_credentials is None)


def refreshed_lines(prefix: str, url: str, config: StoreConfig) -> RefreshedValue[str] | None:
    """The same as lines of a request; None if there are none and never will be."""
    if config.reload_credentials is None and not _headers(prefix, url, config):
        return None

    def read() -> str:
        return "".join(f"{name}: {value}\r\n" for name, value in _headers(prefix, url, config).items())

    return RefreshedValue(read, lasting=config.reload_credentials is None)


def _headers(prefix: str, url: str, config: StoreConfig) -> Mapping[str, str]:
    reload = config.reload_credentials
    return web_headers(prefix, url, reload() if reload else config.credentials)


def _check_one_of(prefix: str, basic: bool, token: bool, header: bool) -> None:
    given = {f"{prefix}USERNAME": basic, f"{prefix}BEARER_TOKEN": token, f"{prefix}HEADERS": header}
    found = [name for name, is_set in given.items() if is_set]
    if len(found) > 1:
        what = "several credentials for one server"
        raise InvalidSpec.of(what, f"{', '.join(found)} each set Authorization", "Set one of them")


def _basic(user: str, password: str) -> str:
    """RFC 7617, section 2."""
    if ":" in user:
        raise InvalidSpec.of("the user for a web server has a colon", "", "Basic authentication forbids it")
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def _further_headers(name: str, text: str) -> dict[str, str]:
    """One field per line, such as `X-Api-Key: abc`. Values never appear in messages."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    fields = [(field.strip(), value.strip()) for field, _, value in (line.partition(":") for line in lines)]
    InvalidSpec.raise_any(_field_problems(name, fields))
    return {field: _checked(name, value) for field, value in fields}


def _field_problems(name: str, fields: list[tuple[str, str]]) -> Iterator[Problem]:
    for number, (field, value) in enumerate(fields, 1):
        if not FIELD_NAME.fullmatch(field) or not value:
            yield Problem(
                f"line {number} of {name} is not a header field", "", "Write NAME: VALUE on each line"
            )
        elif field.lower() in OWN_FIELDS:
            yield Problem(f"{name} must not set {field}", "podferry sets it", "Remove the line")


def _checked(name: str, value: str) -> str:
    if not is_printable_ascii(value):
        raise InvalidSpec.of(
            f"{name} has characters that cannot be sent", "", "Use printable ASCII characters"
        )
    return value


def _netrc_login(text: str, host: str) -> tuple[str, str]:
    """User and password of a host, or of `default`; both empty if there are none.

    Source: "The .netrc file", GNU inetutils; macros are skipped, as curl does.
    """
    if not text:
        return "", ""
    entries = _netrc_entries(text)
    found = entries.get(f"machine {host}") or entries.get("default") or {}
    return found.get("login", ""), found.get("password", "")


def _netrc_entries(text: str) -> dict[str, dict[str, str]]:
    """Fields by `machine NAME` or `default`; the first entry of a name counts."""
    entries: dict[str, dict[str, str]] = {}
    entry: dict[str, str] = {}
    words = iter(_netrc_words(text))
    for word in words:
        if word in {"machine", "default"}:
            key = f"machine {next(words, '').lower()}" if word == "machine" else word
            entry = entries.setdefault(key, {})
        elif word in {"login", "password", "account"}:
            entry.setdefault(word, next(words, ""))
    return entries


def _netrc_words(text: str) -> list[str]:
    kept, in_macro = list[str](), False
    for line in text.splitlines():
        in_macro = (in_macro and bool(line.strip())) or line.lstrip().startswith("macdef")
        if not in_macro and not line.lstrip().startswith("#"):
            kept.append(line)
    from shlex import split  # noqa: PLC0415 - nearly nobody has a netrc file

    try:
        return split("\n".join(kept))
    except ValueError:  # its message would have a part of the file
        what = "the netrc file cannot be read"
        raise InvalidSpec.of(
            what, "a quotation mark is not closed", "Close it, or escape it with \\"
        ) from None
