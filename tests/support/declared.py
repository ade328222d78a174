"""What an engine declares of a scheme, and what a store that it opened can do."""

from podferry.contract.uri import Uri
from podferry.storage.engine import Engine, Scheme
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig

KEYS = {
    "AWS_ACCESS_KEY_ID": "k",
    "AWS_SECRET_ACCESS_KEY": "s",
    "BOS_ACCESS_KEY_ID": "k",
    "BOS_SECRET_ACCESS_KEY": "s",
    "AZURE_STORAGE_ACCOUNT_NAME": "account",
    "AZURE_STORAGE_ACCOUNT_KEY": "c2VjcmV0",
    "GOOGLE_SKIP_SIGNATURE": "true",
    "OSS_ACCESS_KEY_ID": "k",
    "OSS_ACCESS_KEY_SECRET": "s",
    "OSS_REGION": "cn-hangzhou",
    "SFTP_USERNAME": "user",
    "SFTP_PASSWORD": "secret",
    "SFTP_KNOWN_HOSTS": "bucket ssh-ed25519 AAAA",
    "SMB_USERNAME": "user",
    "SMB_PASSWORD": "password",
}
"""Credentials that are well formed: a store opens without sending anything."""


def declared(scheme: Scheme) -> dict[str, bool]:
    """What can be compared without a server."""
    return {
        "exclusive_create": scheme.exclusive_create,
        "resumed_uploads": scheme.resumed_uploads,
        "server_copy": scheme.server_copy,
        "connection_pool": scheme.connection_pool,
    }


async def found_at(engine: Engine, scheme: Scheme) -> dict[str, bool]:
    """The same of a store that the engine opened."""
    name = scheme.names[0]
    uri = Uri(name, "" if name == "file" else "bucket", "prefix", (("engine", engine.name),))
    store = open_store(uri, StoreConfig(credentials=KEYS))
    try:
        return {
            "exclusive_create": store.exclusive_create,
            "resumed_uploads": store.multipart is not None,
            "server_copy": store.server_copy is not None,
            "connection_pool": store.request_builder is not None,
        }
    finally:
        await store.close()
