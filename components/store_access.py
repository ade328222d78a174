"""Configures a step's store from its mounted Secret, or else its environment."""

from __future__ import annotations

import atexit
from pathlib import Path

from podferry.components.secret_dir import SECRET_DIR
from podferry.contract.spec import Access
from podferry.sidecar.config.store_access import store_config
from podferry.storage.obstore.thread_exit import wait_for_threads
from podferry.storage.store import StoreConfig

# KFP's executor ends as Python does, with the threads of the store's client.
atexit.register(wait_for_threads)


def step_store_config(endpoint: str, region: str, own_secret: Path | None = None) -> StoreConfig:
    """Return a step's store configuration; an empty text means the vendor's default.

    Raises `CredentialsMissing` if the mounted Secret is empty.

    Args:
        endpoint: URL of the store.
        region: Its region.
        own_secret: Mount path of a Secret that counts before the step's, if it is mounted.
    """
    access = Access(endpoint=endpoint or None, region=region or None)
    return store_config(access, secret_dir_for(own_secret))


def secret_dir_for(own_secret: Path | None = None) -> Path | None:
    """The mount path of the Secret that applies, or None for the environment."""
    mounted = (path for path in (own_secret, SECRET_DIR) if path is not None and path.is_dir())
    return next(mounted, None)
