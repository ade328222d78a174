"""Builds a store's configuration: access settings of the spec, credentials of a Secret or the environment."""

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
        access: Endpoint and region, if the spec names them.
        secret_dir: A mounted Secret, used instead of the environment; None for the environment.

    Raises:
        CredentialsMissing, InvalidSpec: The Secret is missing, or the credentials cannot be read.
    """
    config = config_from_directory(secret_dir) if secret_dir else config_from_environment(os.environ)
    endpoint, region = access.endpoint or config.endpoint, access.region or config.region
    return msgspec.structs.replace(config, endpoint=endpoint, region=region)
