"""Errors for a bucket of another region than the configured one."""

from __future__ import annotations

from podferry.contract.errors import FerryError, Problem
from podferry.storage.errors.rules import ERRORS
from podferry.storage.errors.translate import StoreLocation


def wrong_endpoint(location: StoreLocation, endpoint: str) -> FerryError:
    """The error for a bucket at another endpoint, which OSS names."""
    remedy = f"Set OSS_ENDPOINT=https://{endpoint}, --endpoint or podferry.io/endpoint, and its region"
    return _error(location, f"it is at {endpoint}", remedy)


def wrong_region(location: StoreLocation, region: str) -> FerryError:
    """The error for requests that are signed for another region than the endpoint's."""
    remedy = "Set OSS_REGION, --region or podferry.io/region to the region of the endpoint"
    return _error(location, f"signed for the region {region}", remedy)


def _error(location: StoreLocation, measured: str, remedy: str) -> FerryError:
    rule = ERRORS["region"]
    return rule.error(Problem(rule.sentence.format(location.uri), f"{measured}; {location.address}", remedy))
