"""Certificate authorities (CA) that are trusted in addition to the system's, from files or a Secret.

OpenSSL and obstore both read the system's from `SSL_CERT_FILE` and `SSL_CERT_DIR`; bundles here add to them.
A bundle never replaces the system's: the service of a role usually has a public certificate.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path

import msgspec

from podferry.contract.ca_certificates import BEGIN, CERTIFICATE, parse_certificates
from podferry.contract.errors import InvalidSpec

BUNDLE_VARIABLES = ("PODFERRY_CA_BUNDLE", "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Each is a path, or the certificates themselves as PEM. The webhook sets the first from its policy."""
SECRET_KEYS = ("ca", "ca.crt", *BUNDLE_VARIABLES)
"""Keys of a Secret with the certificates themselves as PEM; `ca.crt` is cert-manager's name."""
MAX_BUNDLE_BYTES = 4 << 20
"""Of a file in a directory: Mozilla's bundle has 0.2 MiB."""
SYSTEM_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


class CaBundle(msgspec.Struct, frozen=True):
    """Certificates as PEM, and the names of the variables or keys that they come from."""

    pem: str = ""
    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"CaBundle({len(CERTIFICATE.findall(self.pem))} certificates of {', '.join(self.names)})"


def read_ca_bundle(environ: Mapping[str, str], secret: Mapping[str, str]) -> CaBundle:
    """The bundles of an environment and of a store's Secret.

    Raises:
        InvalidSpec: A bundle cannot be read, or has no certificate.
    """
    _check_system_paths(environ)
    named = [
        *((f"the key {key!r} of the Secret", secret[key]) for key in SECRET_KEYS if secret.get(key)),
        *((name, environ[name]) for name in BUNDLE_VARIABLES if environ.get(name)),
    ]
    system = ssl.get_default_verify_paths().cafile
    found = {name: _certificates(name, value) for name, value in named if not _is_same_file(value, system)}
    blocks = dict.fromkeys(block for text in found.values() for block in text)
    return CaBundle("\n".join([*blocks, ""]) if blocks else "", tuple(found))


def _check_system_paths(environ: Mapping[str, str]) -> None:
    for name in SYSTEM_VARIABLES:
        paths = environ.get(name, "").split(":") if name == "SSL_CERT_DIR" else [environ.get(name, "")]
        if any(paths) and not any(Path(path).exists() for path in paths if path):
            raise InvalidSpec.of(
                f"{name} names a path that does not exist", environ[name], "Correct it, or unset it"
            )


def _is_same_file(value: str, other: str | None) -> bool:
    """Whether a value is the path of another file; a system's bundle is large, and trusted anyway."""
    if other is None or "\n" in value or not Path(value).exists():
        return False
    return Path(value).samefile(other)


def _certificates(name: str, value: str) -> list[str]:
    """The certificates of a variable or key: a path, or PEM."""
    what = f"the CA bundle of {name} cannot be read"
    try:
        found = _Found("", value) if BEGIN in value else _read(Path(value))
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else ""
        measured = f"{value[:200]!r}: {reason or type(error).__name__}"
        raise InvalidSpec.of(what, measured, "Give the path of a file in PEM format") from error
    try:
        return parse_certificates(found.text)
    except InvalidSpec as error:
        (problem,) = error.problems
        path = f"{value[:200]!r} is {found.what}" if found.what else ""
        measured = "; ".join(filter(None, [path, problem.measured]))
        raise InvalidSpec.of(f"{what}: {problem.what}", measured, problem.remedy) from None


class _Found(msgspec.Struct, frozen=True):
    """What a path is, and the text there."""

    what: str
    text: str


def _read(path: Path) -> _Found:
    if not path.is_dir():
        text = path.read_text(encoding="utf-8", errors="replace")
        return _Found("a file" if text else "an empty file", text)
    files = [file for file in sorted(path.iterdir()) if file.is_file()]
    small = [file for file in files if file.stat().st_size <= MAX_BUNDLE_BYTES]
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in small]
    return _Found(f"a directory with {len(files)} files", "\n".join(texts))
