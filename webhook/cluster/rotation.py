"""Rotates the certificates while the listener stays open.

    1. read the Secret   2. renew if due   3. write it back   4. update the trusted bundles   5. serve

A leaf is served only after the webhook configurations trust its CA. Replicas share the Secret; the one that
writes second gets a conflict and reads again.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import structlog

from podferry.contract.errors import FerryError, Unavailable
from podferry.webhook.cluster.certificates import Certificates, expiry_of, renew_if_needed, renewal_time_of
from podferry.webhook.cluster.failure_log import FailureLog
from podferry.webhook.cluster.kube import Cluster
from podferry.webhook.cluster.signing_keys import (
    SigningKeys,
    decode_keys,
    encode_keys,
    in_signing_order,
    renew_keys,
)
from podferry.webhook.pod.stamp import Signer

log = structlog.get_logger(__name__)

SECRET_KEYS = {"bundle": "ca.crt", "ca_key": "ca.key", "certificate": "tls.crt", "key": "tls.key"}
"""Keys of the Secret, by field of `Certificates`."""
KEYS_KEY = "stamp.keys"
"""Key of the Secret with the keys that sign stamps."""
MAX_CONFLICTS = 5
"""Conflicts after which to give up; there are two replicas."""
CHECK_SECONDS = 10.0
"""Seconds between checks of the Secret. If somebody empties it and another replica fills it, reviews may fail
until this one has looked."""
SETTLE_SECONDS = 5.0
"""Seconds for API servers to see a changed configuration before a new CA's leaf is served."""
CONFIGURATIONS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


class Rotation:
    """The certificates of one replica; the TLS `context` to serve with always has the current one."""

    def __init__(
        self, cluster: Cluster, secret: str, config: str, names: list[str], settle: float = SETTLE_SECONDS
    ) -> None:
        """Set up the rotation; `refresh` loads the first certificate.

        `config` names the webhook configurations, `names` are the Service's DNS names. A leaf of a new CA is
        served `settle` seconds after the bundles are updated.
        """
        self._cluster, self._secret, self._config = cluster, secret, config
        self._names, self._settle = names, settle
        self._served: Certificates | None = None
        self._keys: SigningKeys = ()
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)

    @property
    def expires(self) -> datetime:
        """When the served certificate expires; long ago if there is none yet."""
        served = self._served
        return expiry_of(served.certificate) if served else datetime.fromtimestamp(0, UTC)

    async def refresh(self) -> None:
        """Run one round; connections continue. Raises `NotFound`, `AccessDenied` or `Unavailable`."""
        certificates = await self._read_and_renew()
        trusted = await self._trust(certificates)
        if certificates == self._served:
            return
        if trusted and self._served is not None:
            await asyncio.sleep(self._settle)
        load(self.context, certificates)
        self._served = certificates
        log.info("certificate loaded", renewal=renewal_time_of(certificates).isoformat())

    async def run(self, seconds: float = CHECK_SECONDS) -> None:
        """Run rounds forever. If one fails, log it and keep the current certificate."""
        failures = FailureLog(log, "error", "certificate check failed")
        while True:
            await asyncio.sleep(seconds)
            try:
                await self.refresh()
                failures.succeeded()
            except FerryError as error:
                failures.failed(error)

    def signer(self) -> Signer:
        """Signs stamps now, as every other replica verifies them."""
        now = int(time.time())
        return Signer(in_signing_order(self._keys, now), now)

    async def _read_and_renew(self) -> Certificates:
        for _ in range(MAX_CONFLICTS):
            secret, now = await self._cluster.secret(self._secret), datetime.now(UTC)
            data = secret.get("data") or {}
            certificates, stored = _decode(data), decode_keys(base64.b64decode(data.get(KEYS_KEY, "")))
            # A Secret that has lost them gets what is served: the other replica has it, too.
            new = renew_if_needed(certificates or self._served, self._names, now)
            keys = renew_keys(stored, self._keys, int(now.timestamp()))
            unchanged = new == certificates and keys == stored
            if unchanged or await self._cluster.replace_secret({**secret, "data": _encode(new, keys)}):
                self._keys = keys
                return new
        raise Unavailable.of(f"the Secret {self._secret} keeps changing", f"{MAX_CONFLICTS} conflicts")

    async def _trust(self, certificates: Certificates) -> bool:
        bundle = base64.b64encode(certificates.bundle).decode()
        changed = [await self._cluster.trust(kind, self._config, bundle) for kind in CONFIGURATIONS]
        return any(changed)


def load(context: ssl.SSLContext, certificates: Certificates) -> None:
    """Serve a certificate from now on; open connections keep theirs."""
    # Python's ssl module only reads files. These are private to this user and deleted at once.
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_bytes(certificates.certificate)
        with os.fdopen(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(certificates.key)
        context.load_cert_chain(certificate, key)


def _decode(data: dict[str, str]) -> Certificates | None:
    if not all(name in data for name in SECRET_KEYS.values()):
        return None
    return Certificates(**{field: base64.b64decode(data[name]) for field, name in SECRET_KEYS.items()})


def _encode(new: Certificates, keys: SigningKeys) -> dict[str, str]:
    values = {name: getattr(new, field) for field, name in SECRET_KEYS.items()} | {
        KEYS_KEY: encode_keys(keys)
    }
    return {name: base64.b64encode(value).decode() for name, value in values.items()}
