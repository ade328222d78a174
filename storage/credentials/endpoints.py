"""Vendors of S3 services, and the check of an endpoint."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from podferry.contract.errors import InvalidSpec
from podferry.contract.hidden_secrets import hide_secrets
from podferry.contract.location_globs import is_misbracketed
from podferry.storage.network.hosts import LABEL, is_host
from podferry.storage.network.proxies import DEFAULT_PORTS


class S3Vendor(msgspec.Struct, frozen=True):
    """A vendor's S3 service: the endpoint's URL, with `{region}`, and the default region."""

    endpoint: str
    region: str


S3_VENDORS = {
    "s3": S3Vendor("https://s3.{region}.amazonaws.com", "us-east-1"),
    "s3a": S3Vendor("https://s3.{region}.amazonaws.com", "us-east-1"),
    "bos": S3Vendor("https://s3.{region}.bcebos.com", "bj"),
}


def host_label(what: str, text: str) -> str:
    """A part of a host's name: with a slash in it, what follows would be a path of another host.

    Args:
        what: Whose part it is, such as `the region`.
        text: Of a Secret or the environment.

    Raises:
        InvalidSpec: It is no label of a host's name.
    """
    if not LABEL.fullmatch(text):
        remedy = "Write letters, digits and hyphens, or set the endpoint"
        raise InvalidSpec.of(f"{what} cannot be part of a host's name", repr(text), remedy)
    return text


def checked_endpoint(endpoint: str) -> str:
    """An endpoint without a trailing slash.

    Raises:
        InvalidSpec: It is not an http or https URL, it has a space or a control character, or a user, whom
            messages would show.
    """
    remedy, shown = "Write http://HOST:PORT or https://HOST", hide_secrets(repr(endpoint))
    if not _is_url(endpoint):
        raise InvalidSpec.of("an endpoint must be a URL", shown, remedy)
    if not endpoint.isprintable() or " " in endpoint:  # `urlsplit` drops some, which clients then send
        raise InvalidSpec.of("an endpoint must have no spaces or control characters", shown, remedy)
    if "@" in urlsplit(endpoint).netloc:
        raise InvalidSpec.of("an endpoint must have neither a user nor a password", shown, remedy)
    return endpoint.rstrip("/")


def _is_url(endpoint: str) -> bool:
    try:
        split = urlsplit(endpoint)
        host, valid_port = split.hostname or "", split.port != 0
    except ValueError:
        return False
    whole = is_host(host) and not is_misbracketed(split.netloc.rpartition("@")[2])
    return split.scheme in DEFAULT_PORTS and whole and valid_port
