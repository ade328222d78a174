"""How to reach a store: what the spec says, with the credentials of a Secret or of the environment."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from podferry.contract.spec import Access
from podferry.storage.credentials.sources import config_from_directory, config_from_environment
from podferry.storage.store import StoreConfig


def store_config(access: Access, secret_dir: Path | None) -> StoreConfig:
    """The configuration of a store.

    Args:
        access: Endpoint and region, where the spec names them.
        secret_dir: A mounted Secret, which then stands alone; None for the environment.

    Raises:
        CredentialsMissing, InvalidWish: The Secret is missing, or what is there cannot be read.
    """
    held = config_from_directory(secret_dir) if secret_dir else config_from_environment(os.environ)
    return msgspec.structs.replace(
        held, endpoint=access.endpoint or held.endpoint, region=access.region or held.region
    )
