"""The addresses of a cache's holders, from the EndpointSlices of its Service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from podferry.contract.cache_api import PORT


def holder_urls(slices: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The URLs of all holders, also of those that are not ready, which may be soon."""
    endpoints = [(part, endpoint) for part in slices for endpoint in part.get("endpoints") or ()]
    found = (_url(part, address) for part, one in endpoints for address in one.get("addresses") or ())
    return tuple(dict.fromkeys(found))


def _url(part: Mapping[str, Any], address: str) -> str:
    ports = [port["port"] for port in part.get("ports") or () if port.get("port")]
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{ports[0] if ports else PORT}"
