"""Configures a step's store from its mounted Secret, or else its environment."""

from __future__ import annotations

import atexit

from podferry.components.secret_dir import SECRET_DIR
from podferry.contract.spec import Access
from podferry.sidecar.config.store_access import store_config
from podferry.storage.obstore.thread_exit import wait_for_threads
from podferry.storage.store import StoreConfig

# KFP's executor ends as Python does, with the threads of the store's client.
atexit.register(wait_for_threads)


def step_store_config(endpoint: str, region: str) -> StoreConfig:
    """Return a step's store configuration; an empty text means the vendor's default.

    Raises `CredentialsMissing` if the mounted Secret is empty.
    """
    access = Access(endpoint=endpoint or None, region=region or None)
    return store_config(access, SECRET_DIR if SECRET_DIR.is_dir() else None)
