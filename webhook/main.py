"""Runs the webhook: policy, certificates and server, from start to SIGTERM."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import signal
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from podferry.webhook.admission.listener import Listener
from podferry.webhook.admission.metrics import serve_metrics
from podferry.webhook.admission.open_files import raise_open_files
from podferry.webhook.admission.server import Webhook
from podferry.webhook.cluster.caches import Caches
from podferry.webhook.cluster.certificate_files import CertificateFiles, CertificateLoader
from podferry.webhook.cluster.kube import (
    SERVICE_ACCOUNT_DIR,
    Cluster,
    KubeClient,
    cluster_session,
    in_cluster_url,
)
from podferry.webhook.cluster.last_policy import LastPolicy
from podferry.webhook.cluster.live_policy import LivePolicy
from podferry.webhook.cluster.namespaces import ClusterNamespaces, UnknownNamespaces
from podferry.webhook.cluster.rotation import Rotation
from podferry.webhook.cluster.rule_registration import RuleRegistration
from podferry.webhook.pod.stamp import Signer
from podferry.webhook.policy.policy_file import PolicyFile

log = structlog.get_logger(__name__)

M_MMAP_THRESHOLD, BUFFER_BYTES = -3, 64 * 1024
"""glibc's parameter, and its value. Each TLS connection has a buffer of 256 KiB, of which it touches little.
By default, glibc soon keeps such buffers for reuse, touched: 46 KiB for each connection, 24 with this.
Source: mallopt(3)."""
OBJECTS_PER_COLLECTION = 20_000
"""A review makes some thousand objects without cycles, which go without the collector. With Python's 700, it
looked several times during each review and found nothing."""


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
        configuration: Name of the webhook configuration in which the policy's rules are registered.
        metrics_port: Port of the metrics, in plain HTTP; None for none.
        shutdown_delay: Seconds to keep serving after SIGTERM: Services take a while to reroute requests.
        refresh: Seconds between checks of the policy.
        last_policy: Name of the ConfigMap with the last valid policy.
        policy_config_map: Name of the ConfigMap that the policy's file is from; None if it is not known.
    """

    policy: Path
    host: str
    port: int
    certificates: CertificateFiles | ManagedCertificates
    configuration: str = "podferry"
    metrics_port: int | None = None
    shutdown_delay: float = 5.0
    refresh: float = 5.0
    last_policy: str = "podferry-last-policy"
    policy_config_map: str | None = None


@dataclass(frozen=True, slots=True)
class _Identity:
    """What serving needs: the TLS context, the cluster, what signs stamps, and what renews it all."""

    context: ssl.SSLContext
    cluster: Cluster | None
    signer: Callable[[], Signer]
    expires: Callable[[], datetime]
    renew: Callable[[], Coroutine[Any, Any, None]]

    def obstacles(self) -> list[str]:
        """Why API servers would not connect."""
        expires = self.expires()
        return [f"the certificate expired at {expires.isoformat()}"] if expires <= datetime.now(UTC) else []


async def run_webhook(config: WebhookConfig) -> None:
    """Serve until SIGTERM or SIGINT. Raises `FerryError` without a valid policy or certificates."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    raise_open_files()
    _return_buffers()
    gc.set_threshold(OBJECTS_PER_COLLECTION)
    async with _identity(config.certificates) as identity:
        last = LastPolicy(identity.cluster, config.last_policy) if identity.cluster else None
        policy = PolicyFile(config.policy, await last.read() if last else None)
        caches = Caches(identity.cluster) if identity.cluster else None
        namespaces = ClusterNamespaces(identity.cluster, caches) if identity.cluster else UnknownNamespaces()
        webhook = Webhook(lambda: policy.policy, namespaces, identity.signer, identity.obstacles)
        _watch(webhook, policy, identity)
        listener = Listener(webhook)
        async with _metrics_served(webhook, config):
            await listener.open(config.host, config.port, identity.context)
            log.info("serving", host=config.host, port=config.port, policy=policy.policy.digest)
            refresh = _refresh_policy(policy, _live_policy(identity, config), last, webhook, config.refresh)
            try:
                watching = [caches.run()] if caches else []
                registration = _registration(identity, config, policy)
                await _run_until(stop, [refresh, identity.renew(), *registration, *watching])
                await listener.drain(config.shutdown_delay)
            finally:
                await listener.close()


def _registration(
    identity: _Identity, config: WebhookConfig, policy: PolicyFile
) -> Iterator[Coroutine[Any, Any, None]]:
    """The task that registers the policy's rules, if there is a cluster."""
    if identity.cluster is not None:
        yield RuleRegistration(identity.cluster, config.configuration, lambda: policy.policy).run()


def _watch(webhook: Webhook, policy: PolicyFile, identity: _Identity) -> None:
    watch = webhook.metrics.watch
    watch("ready", "1 if reviews can be sent here", lambda: not webhook.not_ready())
    watch(
        "policy_valid",
        "0 if the policy file is invalid and an earlier policy is used",
        lambda: not policy.problems,
    )
    watch(
        "certificate_expiry_timestamp_seconds",
        "When the served certificate expires",
        lambda: identity.expires().timestamp(),
    )
    webhook.metrics.policy_read.set_to_current_time()


@asynccontextmanager
async def _metrics_served(webhook: Webhook, config: WebhookConfig) -> AsyncIterator[None]:
    if config.metrics_port is None:
        yield
        return
    runner = await serve_metrics(webhook.metrics, config.host, config.metrics_port)
    try:
        yield
    finally:
        await runner.cleanup()


def _return_buffers() -> None:
    """Have glibc, if it is the C library, return the connections' buffers to the kernel at once."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, BUFFER_BYTES)


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


def _live_policy(identity: _Identity, config: WebhookConfig) -> LivePolicy | None:
    if identity.cluster is None or config.policy_config_map is None:
        return None
    return LivePolicy(identity.cluster, config.policy_config_map)


async def _refresh_policy(
    policy: PolicyFile, live: LivePolicy | None, last: LastPolicy | None, webhook: Webhook, seconds: float
) -> None:
    while True:
        if policy.refresh(await live.read() if live else None):
            webhook.metrics.policy_read.set_to_current_time()
        if last is not None:
            await last.keep(policy.text)
        await asyncio.sleep(seconds)


@asynccontextmanager
async def _identity(source: CertificateFiles | ManagedCertificates) -> AsyncIterator[_Identity]:
    if isinstance(source, CertificateFiles):
        loader = CertificateLoader(source)
        async with _cluster() as found:
            yield _Identity(loader.context, found, loader.signer, lambda: loader.expires, loader.run)
        return
    url = in_cluster_url()
    async with cluster_session(source.account) as session:
        cluster = KubeClient(session, url, source.account)
        names = [f"{source.service}.{cluster.namespace}.svc"]
        rotation = Rotation(cluster, source.secret, source.configuration, names)
        await rotation.refresh()
        yield _Identity(rotation.context, cluster, rotation.signer, lambda: rotation.expires, rotation.run)


@asynccontextmanager
async def _cluster(account: Path = SERVICE_ACCOUNT_DIR) -> AsyncIterator[Cluster | None]:
    """The API server, in a pod with a service account."""
    if not (account / "token").exists():
        yield None
        return
    async with cluster_session(account) as session:
        yield KubeClient(session, in_cluster_url(), account)
