"""The webhook's process: policy, certificates and server, from start to SIGTERM."""

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
    """A certificate that somebody else keeps. It is read once."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class OwnCertificates:
    """Certificates that the webhook keeps itself.

    Attributes:
        secret: The Secret that replicas share; it exists, maybe empty.
        configuration: Name of the webhook configurations that are to trust them.
        service: The Service's name in the webhook's namespace.
        account: Where the pod's service account is mounted.
    """

    secret: str
    configuration: str
    service: str
    account: Path = SERVICE_ACCOUNT_DIR


@dataclass(frozen=True, slots=True)
class WebhookConfig:
    """All that the process is told.

    Attributes:
        policy: The policy's file.
        host, port: Where to listen.
        certificates: Where they come from.
        shutdown_delay: Seconds to keep serving after SIGTERM: Services take a while to reroute requests.
        refresh: Seconds between two looks at the policy.
    """

    policy: Path
    host: str
    port: int
    certificates: CertificateFiles | OwnCertificates
    shutdown_delay: float = 5.0
    refresh: float = 5.0


async def run_webhook(config: WebhookConfig) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        FerryError: The policy is wrong at the start, or there are no certificates to be had.
    """
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    policy = PolicyFile(config.policy)
    async with _secured(config.certificates) as (context, namespaces, chores):
        webhook = Webhook(lambda: policy.policy, namespaces)
        runner = await serve(webhook, config.host, config.port, context)
        log.info("serving", host=config.host, port=config.port, policy=policy.policy.digest)
        try:
            await _until(end, [_keep_policy(policy, config.refresh), *chores])
            await drain_requests(webhook, config.shutdown_delay)
        finally:
            await runner.cleanup()


async def _until(end: asyncio.Event, chores: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Wait for the end while chores run. A chore that ends has failed, and its error is raised."""
    waiting = asyncio.create_task(end.wait())
    running = [asyncio.create_task(chore) for chore in chores]
    try:
        done, _ = await asyncio.wait([waiting, *running], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in (waiting, *running):
            task.cancel()
        await asyncio.gather(waiting, *running, return_exceptions=True)


async def _keep_policy(policy: PolicyFile, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        policy.refresh()


SecuredServer = tuple[ssl.SSLContext, Namespaces, list[Coroutine[Any, Any, None]]]


@asynccontextmanager
async def _secured(source: CertificateFiles | OwnCertificates) -> AsyncIterator[SecuredServer]:
    """A context to serve with, where namespaces are looked up, and what keeps the certificates good."""
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
        yield rotation.context, ClusterNamespaces(cluster), [rotation.keep()]
