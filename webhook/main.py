"""Runs the webhook: policy, certificates and server, from start to SIGTERM."""

from __future__ import annotations

import asyncio
import signal
import ssl
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from podferry.webhook.kube import SERVICE_ACCOUNT_DIR, KubeClient, cluster_session, in_cluster_url
from podferry.webhook.policy_file import PolicyFile
from podferry.webhook.rotation import Rotation
from podferry.webhook.server import (
    ClusterNamespaces,
    Namespaces,
    UnknownNamespaces,
    Webhook,
    drain_requests,
    serve,
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate managed elsewhere, read once."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class ManagedCertificates:
    """Certificates managed by the webhook.

    Attributes:
        secret: The Secret that replicas share; it exists, but may be empty.
        configuration: Name of the webhook configurations that must trust them.
        service: The Service's name in the webhook's namespace.
        account: Directory of the pod's service account.
    """

    secret: str
    configuration: str
    service: str
    account: Path = SERVICE_ACCOUNT_DIR


@dataclass(frozen=True, slots=True)
class WebhookConfig:
    """Configuration of the process.

    Attributes:
        policy: The policy's file.
        host, port: Address to listen on.
        certificates: Their source.
        shutdown_delay: Seconds to keep serving after SIGTERM: Services take a while to reroute requests.
        refresh: Seconds between checks of the policy file.
    """

    policy: Path
    host: str
    port: int
    certificates: CertificateFiles | ManagedCertificates
    shutdown_delay: float = 5.0
    refresh: float = 5.0


async def run_webhook(config: WebhookConfig) -> None:
    """Serve until SIGTERM or SIGINT. Raises `FerryError` without a valid policy or certificates."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    policy = PolicyFile(config.policy)
    async with _secured(config.certificates) as (context, namespaces, tasks):
        webhook = Webhook(lambda: policy.policy, namespaces)
        runner = await serve(webhook, config.host, config.port, context)
        log.info("serving", host=config.host, port=config.port, policy=policy.policy.digest)
        try:
            await _run_until(stop, [_refresh_policy(policy, config.refresh), *tasks])
            await drain_requests(webhook, config.shutdown_delay)
        finally:
            await runner.cleanup()


async def _run_until(stop: asyncio.Event, background: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run background tasks until `stop`. One that returns has failed, and its error is raised."""
    waiting = asyncio.create_task(stop.wait())
    running = [asyncio.create_task(one) for one in background]
    try:
        done, _ = await asyncio.wait([waiting, *running], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in (waiting, *running):
            task.cancel()
        await asyncio.gather(waiting, *running, return_exceptions=True)


async def _refresh_policy(policy: PolicyFile, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        policy.refresh()


SecuredServer = tuple[ssl.SSLContext, Namespaces, list[Coroutine[Any, Any, None]]]


@asynccontextmanager
async def _secured(source: CertificateFiles | ManagedCertificates) -> AsyncIterator[SecuredServer]:
    """The TLS context, the source of namespaces, and the tasks that renew the certificates."""
    if isinstance(source, CertificateFiles):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(source.certificate, source.key)
        yield context, UnknownNamespaces(), []
        return
    url = in_cluster_url()
    async with cluster_session(source.account) as session:
        cluster = KubeClient(session, url, source.account)
        names = [f"{source.service}.{cluster.namespace}.svc"]
        rotation = Rotation(cluster, source.secret, source.configuration, names)
        await rotation.refresh()
        yield rotation.context, ClusterNamespaces(cluster), [rotation.run()]
