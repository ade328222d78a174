"""Parses URIs of data: `scheme://bucket/key?option=value`.

Object keys may contain any character, so only the three that would end the key are escaped in a URI:
`%23` is `#`, `%3F` is `?`, `%25` is `%`. Everything else is literal.
"""

from __future__ import annotations

from functools import lru_cache
from posixpath import normpath

import msgspec

from podferry.contract.corrected_uri import corrected_uri
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.hidden_secrets import has_password, hide_in_location, is_secret, shown_value
from podferry.contract.lazy_pattern import lazy_pattern
from podferry.contract.location_globs import is_misbracketed
from podferry.contract.schemes import STORE_SCHEMES, WEB_SCHEMES, WITHOUT_HOST, parts_of_root
from podferry.contract.suggest import did_you_mean

SCHEME = lazy_pattern(r"[a-z][a-z0-9+.-]*")
ESCAPES = {"%": "%25", "#": "%23", "?": "%3F"}
BUCKET_PATH = lazy_pattern(r"[a-z0-9][a-z0-9.-]{2,62}/.*")
"""A bucket (by the rules for names of Amazon S3 buckets) and a key, without a scheme."""
RELATIVE = ("./", "../", "~")
BACKSLASH = "\\"
FORBIDDEN_IN_HOSTS = lazy_pattern(r"[\x00-\x20\x7f\\<>\"^`{|}]")
"""A backslash is a slash for some clients, which would see another host. Source: the URL standard, "host".
A store in memory has no clients."""
IN_A_SECRET = "Remove it: tokens and signatures belong in the Secret or the environment"  # noqa: S105 - a remedy
WITHOUT_ADDRESS = WITHOUT_HOST - {"image", "memory"}
"""Schemes that have no address of IPv6; some stores make a host's name of the bucket."""
PASSWORD_VARIABLES = {
    **dict.fromkeys(("http", "https"), "HTTP_PASSWORD"),
    **dict.fromkeys(("webdav", "webdavs"), "WEBDAV_PASSWORD"),
    **dict.fromkeys(("ftp", "ftps"), "FTP_PASSWORD"),
    **dict.fromkeys(("sftp", "ssh"), "SFTP_PASSWORD"),
    "smb": "SMB_PASSWORD",
}
"""Of the schemes whose servers know passwords."""
UNESCAPE = lazy_pattern("%(23|3[fF]|25)")
ENGINES = (
    *("obstore", "oss", "hdfs", "webhdfs", "local", "memory", "smb"),
    *("sftp", "ftp", "web", "webdav", "huggingface", "fsspec"),
)
"""Names of podferry's own engines; a test compares them with what the engines declare."""
OPTIONS = {"engine": ENGINES}
MAX_CACHED_LENGTH = 1024
"""Characters of texts whose result is kept: the same few are parsed again and again."""
READ_ONLY_SCHEMES = ("http", "https", "hf")
"""Of stores that nothing can be written to."""

KFP_PLACEHOLDER = "{{$."
"""How KFP's placeholders begin."""
KFP_NULL = "null/"
"""KFP's local runner writes `null` for a part that an inner pipeline does not have."""
KFP_REMEDY = (
    "KFP fills in a placeholder only where it is the entire value, and no text that is passed to an inner "
    "pipeline. Pass the parts, and join them where they are used"
)
"""Source: `resolveInputParameter` in KFP's `backend/src/v2/driver/resolve.go`, 2.17."""


def escape(text: str) -> str:
    """Escape a key for a URI."""
    return "".join(ESCAPES.get(character, character) for character in text)


def unescape(text: str) -> str:
    """The key of a URI's path."""
    return UNESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


class Uri(msgspec.Struct, frozen=True, order=True):
    """A location in a store.

    Attributes:
        scheme: Lower case, without `://`.
        bucket: Bucket, container or `host:port`; empty for local files.
        key: The key, prefix or absolute local path, without a slash at either end.
        options: How to access it, sorted: only `engine` is known.
    """

    scheme: str
    bucket: str
    key: str = ""
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        query = "&".join(f"{name}={value}" for name, value in self.options)
        return f"{self.scheme}://{self.bucket}/{escape(self.key)}" + (f"?{query}" if query else "")

    def __truediv__(self, name: str) -> Uri:
        """The location of `name` below this one."""
        key = "/".join(part for part in (self.key, name.strip("/")) if part)
        return msgspec.structs.replace(self, key=key)

    @property
    def root(self) -> Uri:
        """The bucket itself; a share or a repository, where a host has several."""
        parts = self.key.split("/")[: parts_of_root(self.scheme, self.bucket)]
        return msgspec.structs.replace(self, key="/".join(parts))

    @property
    def parent(self) -> Uri:
        """The location above; the root is its own parent."""
        return self if self == self.root else msgspec.structs.replace(self, key=self.key.rpartition("/")[0])

    @property
    def name(self) -> str:
        """The last part of the key, empty for the root."""
        return "" if self == self.root else self.key.rpartition("/")[2]

    @property
    def engine(self) -> str | None:
        """The engine that the URI requests, if any."""
        return dict(self.options).get("engine")


def parse_uri(text: str) -> Uri:
    """Parse `scheme://bucket/key`, or an absolute path of local files.

    Raises:
        InvalidSpec: Everything that is wrong with the text.
    """
    return _parsed(text.strip()) if len(text) <= MAX_CACHED_LENGTH else _parsed.__wrapped__(text.strip())


@lru_cache(maxsize=256)
def _parsed(text: str) -> Uri:
    if KFP_PLACEHOLDER in text:
        raise InvalidSpec.of("KFP has not filled in this text", repr(hide_in_location(text)), KFP_REMEDY)
    if text.startswith("/"):
        text = "file://" + escape(text)
    scheme, separator, rest = text.partition("://")
    if not separator or not SCHEME.fullmatch(scheme):
        shown = hide_in_location(text)
        raise InvalidSpec.of("not a URI", repr(shown), _remedy_for(shown))
    refuse_password(text)  # the other problems would show it
    location, _, query = rest.partition("?")
    bucket, _, path = location.partition("/")
    problems = [*_location_problems(text, scheme, bucket), *_dot_problems(scheme, bucket, path)]
    InvalidSpec.raise_any([*problems, *_option_problems(query)])
    return Uri(scheme, bucket, unescape(path).strip("/"), tuple(sorted(_options(query))))


def refuse_password(text: str) -> None:
    """Raise `InvalidSpec` for a URI with a password: messages and other programs would show it."""
    scheme, _, rest = text.strip().partition("://")
    if not has_password(text) and ":" not in rest.partition("/")[0].rpartition("@")[0]:
        return
    belongs = "credentials belong in the Secret or the environment"
    variable = PASSWORD_VARIABLES.get(scheme)
    remedy = f"Remove it from the URI: {belongs}" + (f", as {variable}" if variable else "")
    raise InvalidSpec.of("a URI must not have a password", repr(hide_in_location(text.strip())), remedy)


def _remedy_for(text: str) -> str:
    """What to write instead of a text that is no URI."""
    if text.startswith(KFP_NULL):
        return KFP_REMEDY
    if corrected := corrected_uri(text):
        return f"Did you mean {corrected}?"
    if BUCKET_PATH.fullmatch(text):
        return f"Did you mean s3://{text}? If it is a local path, write the absolute one"
    if text.startswith(RELATIVE):  # where relative paths are taken, they are absolute before they come here
        return "Write the absolute path"
    return "Write scheme://bucket/path, for example s3://datasets/digits, or an absolute path"


def _location_problems(text: str, scheme: str, bucket: str) -> list[Problem]:
    what, remedy = "", ""
    shown = hide_in_location(text)
    if "#" in text.partition("?")[0]:
        what, remedy = "a fragment is not allowed here", "Write %23 for a # in the key"
    elif scheme == "file" and bucket:
        what, remedy = "a file URI must not name a host", "Write file:///absolute/path"
    elif scheme != "file":
        what, remedy = _host_problem(shown, scheme, bucket)
    return [Problem(what, repr(shown), remedy)] if what else []


def _dot_problems(scheme: str, bucket: str, path: str) -> list[Problem]:
    """A web server takes `a/./b` for `a/b`, and links to the files there by names below `a/b`."""
    if scheme not in WEB_SCHEMES or not {".", ".."} & set(path.split("/")):
        return []
    plain = normpath(f"/{path}").lstrip("/") + ("/" if path.endswith("/") else "")
    shown = hide_in_location(f"{scheme}://{bucket}/{path}")
    remedy = f"Write {hide_in_location(f'{scheme}://{bucket}/{plain}')}"
    return [Problem("the path of a web address must have no part that is . or ..", repr(shown), remedy)]


def _host_problem(shown: str, scheme: str, bucket: str) -> tuple[str, str]:
    """What is wrong with a bucket or host, and the remedy; empty if nothing is."""
    path = shown.partition("://")[2].partition("?")[0].partition("/")[2]
    host, has_host = bucket.rpartition("@")[2], scheme in STORE_SCHEMES and scheme not in WITHOUT_HOST
    remedy = f"Write {scheme}://{'HOST' if has_host else 'BUCKET'}/{path}"
    if scheme != "memory" and FORBIDDEN_IN_HOSTS.search(bucket):
        remedy = f"Write {shown.replace(BACKSLASH, '/')}" if BACKSLASH in bucket else remedy
        return "the URI's bucket or host has characters that none has", remedy
    if scheme != "memory" and (is_misbracketed(host) or (scheme in WITHOUT_ADDRESS and "[" in host)):
        return "the URI names no valid host and port: only a complete address of IPv6 is in brackets", remedy
    if has_host and not _is_port(host):
        return "the URI names no valid host and port", _remedy_for_port(scheme, bucket, path)
    named = host.partition(":")[0]
    return ("", "") if named else (f"the URI names no {'host' if has_host else 'bucket'}", remedy)


def _remedy_for_port(scheme: str, bucket: str, path: str) -> str:
    """What to write instead of what is no port; scp has a path there."""
    host, _, port = bucket.rpartition(":")
    with_port = f"{scheme}://{host}:PORT/{path}"
    without = f"{scheme}://{host}/{port}/{path}".rstrip("/")
    return f"Write {with_port}" if port.isdecimal() else f"Write {without} or {with_port}"


def _is_port(host: str) -> bool:
    """Whether what is behind a host is a port; engines refuse an address of IPv6 without brackets."""
    name, _, port = host.removesuffix(":").rpartition(":")
    return not name or ":" in name or (port.isdecimal() and int(port) < 1 << 16)


def _options(query: str) -> list[tuple[str, str]]:
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    return [(name, value) for name, _, value in pairs]


def _option_problems(query: str) -> list[Problem]:
    problems = []
    for name, value in _options(query):
        if name not in OPTIONS:
            known = f"Known options: {', '.join(OPTIONS)}"
            remedy = IN_A_SECRET if is_secret(name) else did_you_mean(name, OPTIONS, known)
            measured = f"{name}={shown_value(name, value)}"
            problems.append(Problem(f"unknown option {name!r} in a URI", measured, remedy))
        elif value not in OPTIONS[name]:
            remedy = did_you_mean(value, OPTIONS[name], f"Known: {', '.join(OPTIONS[name])}")
            problems.append(Problem(f"unknown {name} in a URI", repr(value), remedy))
    return problems
