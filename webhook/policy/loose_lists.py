"""Lists of locations that allow more than their author may think; each is valid."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podferry.contract.location_globs import ANY
from podferry.contract.schemes import WITHOUT_HOST
from podferry.webhook.policy.policy import AllowedLocations, Policy

OPEN_HOST = re.compile(r"([^:/]+)://([^/]*[^/@*])\*(:[^/]*)?(/.*)?")
"""A host that ends with a wildcard: any domain may follow."""
BY_NAME = ("s3", "s3a", "bos", "oss", "gs", "gcs", "az", "hf", "hdfs", "viewfs")
"""Schemes whose URIs leave the service to the settings."""
ELSEWHERE = ".elsewhere.example"


def loose_lists(policy: Policy) -> Iterator[str]:
    """A warning for each glob whose host is open, and for services that only a Secret names."""
    yield from _open_hosts("allowed", policy.allowed)
    for index, guardrail in enumerate(policy.guardrails):
        yield from _open_hosts(f"guardrails[{index}].allowed", guardrail.allowed)
    listed = policy.allowed.sources + policy.allowed.destinations
    named = any(glob.partition(":")[0] in BY_NAME for glob in listed)
    if ANY in policy.allowed.endpoints and ANY not in listed and named:
        what = "a Secret, or an annotation, may name another service that has such a bucket"
        yield f"allowed.endpoints is {ANY}: {what}. List the services"


def _open_hosts(path: str, allowed: AllowedLocations) -> Iterator[str]:
    for field in ("sources", "destinations", "endpoints"):
        for glob in getattr(allowed, field):
            found = OPEN_HOST.fullmatch(glob)
            if found is not None and (field == "endpoints" or found[1] not in WITHOUT_HOST):
                other = f"{found[1]}://{found[2]}{ELSEWHERE}{found[3] or ''}{found[4] or ''}"
                yield f"{path}.{field}: {glob} also allows {other}. Write the host to its end"
