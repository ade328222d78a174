"""How a step reaches a store: its mounted Secret, else its environment."""

from __future__ import annotations

from pathlib import Path

from podferry.contract.spec import Access
from podferry.sidecar.config.store_access import store_config
from podferry.storage.store import StoreConfig

SECRET_DIR = Path("/var/run/secrets/podferry.io")
"""Where a step's Secret is mounted. KFP's local runner mounts none: there the environment counts."""


def step_store_config(endpoint: str, region: str) -> StoreConfig:
    """The configuration of a step's store; empty texts leave the choice to the vendor.

    Raises:
        CredentialsMissing: A Secret is mounted and holds nothing.
    """
    access = Access(endpoint=endpoint or None, region=region or None)
    return store_config(access, SECRET_DIR if SECRET_DIR.is_dir() else None)
