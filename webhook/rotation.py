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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from podferry.contract.errors import FerryError, Unavailable
from podferry.webhook.certificates import Certificates, renew_if_needed, renewal_time_of
from podferry.webhook.kube import Cluster

log = structlog.get_logger(__name__)

SECRET_KEYS = {"bundle": "ca.crt", "ca_key": "ca.key", "certificate": "tls.crt", "key": "tls.key"}
"""Keys of the Secret, by field of `Certificates`."""
MAX_CONFLICTS = 5
"""Conflicts after which to give up; there are two replicas."""
CHECK_SECONDS = 60.0
"""Seconds between checks of the Secret, which another replica may have renewed."""
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
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)

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
        while True:
            await asyncio.sleep(seconds)
            try:
                await self.refresh()
            except FerryError as error:
                log.error("certificate check failed", problems=[str(problem) for problem in error.problems])

    async def _read_and_renew(self) -> Certificates:
        for _ in range(MAX_CONFLICTS):
            secret = await self._cluster.secret(self._secret)
            current = _decode(secret)
            new = renew_if_needed(current, self._names, datetime.now(UTC))
            if new == current or await self._cluster.replace_secret({**secret, "data": _encode(new)}):
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


def _decode(secret: dict[str, Any]) -> Certificates | None:
    data = secret.get("data") or {}
    if not all(name in data for name in SECRET_KEYS.values()):
        return None
    return Certificates(**{field: base64.b64decode(data[name]) for field, name in SECRET_KEYS.items()})


def _encode(new: Certificates) -> dict[str, str]:
    return {name: base64.b64encode(getattr(new, field)).decode() for field, name in SECRET_KEYS.items()}
