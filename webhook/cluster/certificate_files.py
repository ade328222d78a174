"""A certificate in files that somebody else renews, such as cert-manager: loaded again when they change."""

from __future__ import annotations

import asyncio
import ssl
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import structlog

from podferry.contract.errors import InvalidSpec
from podferry.webhook.cluster.certificates import expiry_of
from podferry.webhook.cluster.signing_keys import (
    SigningKey,
    SigningKeys,
    add_key,
    in_signing_order,
    key_from_certificate,
)
from podferry.webhook.pod.stamp import Signer

log = structlog.get_logger(__name__)

CHECK_SECONDS = 10.0
"""Seconds between checks of the files; the kubelet itself takes up to a minute to update a Secret's."""


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Where a certificate and its private key are, both PEM."""

    certificate: Path
    key: Path


class CertificateLoader:
    """Serves the certificate of the files; the TLS `context` always has the last valid one.

    Attributes:
        context: To serve with.
        expires: When the served certificate expires.
    """

    def __init__(self, files: CertificateFiles) -> None:
        """Load the certificate. Raises `InvalidSpec` if the files are missing or do not belong together."""
        self._files = files
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._served = self._read()
        self.expires = self._load(self._served)
        self._keys: SigningKeys = (SigningKey(0, key_from_certificate(self._served[1])),)

    def refresh(self) -> bool:
        """Load changed files; return whether they were. Raises `InvalidSpec` and keeps the earlier one."""
        found = self._read()
        if found == self._served:
            return False
        self.expires, self._served = self._load(found), found
        self._keys = add_key(self._keys, key_from_certificate(found[1]), int(time.time()))
        log.info("certificate loaded", expires=self.expires.isoformat())
        return True

    def signer(self) -> Signer:
        """Signs stamps now, as other replicas with the same files verify them."""
        now = int(time.time())
        return Signer(in_signing_order(self._keys, now), now)

    async def run(self, seconds: float = CHECK_SECONDS) -> None:
        """Refresh forever. Invalid files are logged: a certificate and its key may change one by one."""
        while True:
            await asyncio.sleep(seconds)
            try:
                self.refresh()
            except InvalidSpec as error:
                log.error("certificate files are invalid; keeping the earlier ones", problem=str(error))

    def _read(self) -> tuple[bytes, bytes]:
        try:
            return self._files.certificate.read_bytes(), self._files.key.read_bytes()
        except OSError as error:
            raise InvalidSpec.of("the certificate cannot be read", str(error), "Check its mount") from error

    def _load(self, pair: tuple[bytes, bytes]) -> datetime:
        try:
            # In a context of its own first: a failure must not leave half a pair in the one that serves.
            for context in (ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), self.context):
                context.load_cert_chain(self._files.certificate, self._files.key)
            return expiry_of(pair[0])
        except (ssl.SSLError, ValueError) as error:
            what = "the certificate and its key do not belong together, or are not PEM"
            raise InvalidSpec.of(what, str(error), "Write both files of one certificate") from error
