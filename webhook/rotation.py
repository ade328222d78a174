"""Keeps the certificates good while the listener stays open.

    Secret  →  renewed where it is old  →  written back  →  trusted by the configurations  →  served

In this order: a leaf is served only when the API server has been told to trust its CA. Replicas share the
Secret; who writes second finds a conflict and reads again.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from podferry.contract.errors import FerryError, Unavailable
from podferry.webhook.certificates import CertificateMaterial, renew_if_needed, renewal_time_of
from podferry.webhook.kube import Cluster

log = structlog.get_logger(__name__)

SECRET_KEYS = {"bundle": "ca.crt", "ca_key": "ca.key", "certificate": "tls.crt", "key": "tls.key"}
"""Keys of the Secret by the fields of `CertificateMaterial`."""
MAX_CONFLICTS = 5
"""Times that a conflict is met by reading again: there are two replicas."""
CHECK_SECONDS = 60.0
"""Seconds between two looks at the Secret: another replica may have renewed it."""
SETTLE_SECONDS = 5.0
"""Seconds that API servers may take to see a changed configuration, before a new CA's leaf is served."""
CONFIGURATIONS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


class Rotation:
    """The certificates of one replica."""

    def __init__(
        self,
        cluster: Cluster,
        secret: str,
        configuration: str,
        names: Sequence[str],
        settle: float = SETTLE_SECONDS,
    ) -> None:
        """What to keep.

        Args:
            cluster: Where Secret and configurations are.
            secret: Name of the Secret.
            configuration: Name of the webhook configurations, mutating and validating.
            names: DNS names of the Service.
            settle: Seconds between trust in a new bundle and its use.
        """
        self._cluster, self._secret, self._configuration = cluster, secret, configuration
        self._names, self._settle = names, settle
        self._served: CertificateMaterial | None = None
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)

    async def refresh(self) -> None:
        """One round. The context that is being served takes a new certificate without a pause.

        Raises:
            NotFound, AccessDenied, Unavailable: The API server does not let us.
        """
        material = await self._material()
        trusted = await self._trust(material)
        if material == self._served:
            return
        if trusted and self._served is not None:
            await asyncio.sleep(self._settle)
        load(self.context, material)
        self._served = material
        log.info("certificate loaded", renewal=renewal_time_of(material).isoformat())

    async def keep(self, every: float = CHECK_SECONDS) -> None:
        """Rounds for ever. One that fails is told, and the certificate that is served stays."""
        while True:
            await asyncio.sleep(every)
            try:
                await self.refresh()
            except FerryError as error:
                log.error("certificates not checked", problems=[str(problem) for problem in error.problems])

    async def _material(self) -> CertificateMaterial:
        for _ in range(MAX_CONFLICTS):
            secret = await self._cluster.secret(self._secret)
            held = _decode(secret)
            material = renew_if_needed(held, self._names, datetime.now(UTC))
            if material == held or await self._cluster.replace_secret({**secret, "data": _encode(material)}):
                return material
        raise Unavailable.of(f"the Secret {self._secret} changes all the time", f"{MAX_CONFLICTS} conflicts")

    async def _trust(self, material: CertificateMaterial) -> bool:
        bundle = base64.b64encode(material.bundle).decode()
        changed = [await self._cluster.trust(kind, self._configuration, bundle) for kind in CONFIGURATIONS]
        return any(changed)


def load(context: ssl.SSLContext, material: CertificateMaterial) -> None:
    """Serve a certificate from now on; connections that are open keep theirs."""
    # OpenSSL's Python interface takes files alone. They are this user's, and gone at once.
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_bytes(material.certificate)
        with os.fdopen(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(material.key)
        context.load_cert_chain(certificate, key)


def _decode(secret: dict[str, Any]) -> CertificateMaterial | None:
    data = secret.get("data") or {}
    if not all(name in data for name in SECRET_KEYS.values()):
        return None
    return CertificateMaterial(**{field: base64.b64decode(data[name]) for field, name in SECRET_KEYS.items()})


def _encode(material: CertificateMaterial) -> dict[str, str]:
    return {name: base64.b64encode(getattr(material, field)).decode() for field, name in SECRET_KEYS.items()}
