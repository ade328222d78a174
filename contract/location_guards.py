"""Guards what an agent may read and call: the policy's globs, and never a metadata service.

The webhook checks the locations in annotations. Only the agent sees two others, for which the webhook passes
it what is allowed: endpoints in a Secret, and the data that a manifest names.

A metadata service gives any caller on the node its credentials: as a dataset, they would be files that the
trainer reads. Names that resolve to such an address cannot be recognized before the agent connects; a network
policy stops those.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import unicodedata
from urllib.parse import unquote, urlsplit

import msgspec

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.hidden_secrets import hide_secrets
from podferry.contract.location_globs import allows
from podferry.contract.schemes import WITHOUT_HOST

GUARDS_VARIABLE = "PODFERRY_GUARDS"
"""The agent's variable with its `LocationGuards` as JSON."""
METADATA_NETWORKS = tuple(
    ipaddress.ip_network(text)
    for text in (
        "169.254.0.0/16",  # link-local: the metadata services of AWS, Google, Azure, Oracle, OpenStack
        "fe80::/10",  # link-local
        "fd00:ec2::/32",  # AWS
        "fd20:ce::254/128",  # Google
        "100.100.100.200/32",  # Alibaba
        "168.63.129.16/32",  # Azure's host
        "192.0.0.192/32",  # Oracle
    )
)
METADATA_NAMES = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "metadata.tencentyun.com", "instance-data"}
)
AWS_NAME = re.compile(r"instance-data\.[a-z0-9.-]+\.internal")
"""Source: Amazon VPC, "DNS attributes": the domain is the region's."""
NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""Addresses of IPv4 for hosts that only have IPv6. Source: RFC 6052."""
DOTS = {ord(dot): "." for dot in "\u3002\uff61"}
"""Characters that name resolution treats as a dot, and that normalization keeps."""
Guards = tuple[tuple[str, ...], ...]
"""Several lists of globs, each of which must allow a location."""


class LocationGuards(msgspec.Struct, frozen=True):
    """What the policy allows where only the agent can check it.

    Attributes:
        endpoints: Of stores, in Secrets.
        sources: Of the data that manifests name.
    """

    endpoints: Guards = ()
    sources: Guards = ()


UNGUARDED = LocationGuards()


def is_metadata_service(url: str) -> bool:
    """Whether a URL, or `HOST:PORT`, names a metadata service, in any notation of its address."""
    host = _host(url)
    if host in METADATA_NAMES or AWS_NAME.fullmatch(host):
        return True
    address = _address(host)
    return address is not None and any(
        address in network for network in METADATA_NETWORKS if network.version == address.version
    )


def metadata_problem(what: str, url: str) -> Problem | None:
    """Why a URL must not be used, if it names a metadata service; `what` says whose it is."""
    if not is_metadata_service(url):
        return None
    remedy = "Use the address of a store"
    what = f"{what}: a metadata service gives out the node's credentials"
    return Problem(what, hide_secrets(url), remedy)


def location_problem(what: str, location: str) -> Problem | None:
    """Why a URI must not be used, if its host is a metadata service; `what` says whose it is."""
    scheme = location.partition("://")[0]
    return None if scheme in WITHOUT_HOST else metadata_problem(what, location)


def encode_guards(guards: LocationGuards) -> str:
    """The value of `GUARDS_VARIABLE`."""
    return msgspec.json.encode(guards).decode()


def decode_guards(text: str) -> LocationGuards:
    """Read the value of `GUARDS_VARIABLE`, which may be empty; raises `InvalidSpec`."""
    try:
        return msgspec.json.decode(text or "{}", type=LocationGuards)
    except msgspec.MsgspecError as error:
        raise InvalidSpec.of(f"{GUARDS_VARIABLE} is invalid", str(error)) from error


def source_problem(what: str, location: str, guards: Guards) -> Problem | None:
    """Why the data at a location must not be read, if so; `what` says who names it."""
    if problem := location_problem(what, location):
        return problem
    outside = next((globs for globs in guards if not allows(globs, location)), None)
    if outside is None:
        return None
    remedy = f"Use one of the allowed sources: {', '.join(outside) or 'none'}"
    return Problem(f"{what}: the policy does not allow this location", location, remedy)


def _host(url: str) -> str:
    """The host as name resolution reads it."""
    try:
        host = urlsplit(url if "://" in url else f"//{url}").hostname or ""
    except ValueError:  # an unclosed bracket, or one that encloses no address: no client connects to it
        return ""
    return unicodedata.normalize("NFKC", unquote(host)).translate(DOTS).lower().rstrip(".")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return _classic_address(host)
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address


def _classic_address(host: str) -> ipaddress.IPv4Address | None:
    """An address in one of the notations of `inet_aton`: in one number, in octal or hexadecimal."""
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None
