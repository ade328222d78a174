"""The complete process in one loop: policy, certificates, server, and its end."""

import asyncio
import base64
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from podferry.contract.errors import InvalidSpec, NotFound
from podferry.webhook.cluster.certificate_files import CertificateFiles, CertificateLoader
from podferry.webhook.cluster.certificates import renew_if_needed
from podferry.webhook.cluster.rotation import load
from podferry.webhook.main import ManagedCertificates, WebhookConfig, run_webhook
from tests.support.memory_cluster import MemoryCluster
from tests.support.patience import PATIENCE
from tests.support.reserved_port import reserved_port

POLICY = "apiVersion: podferry.io/v1alpha1\nkind: InjectionPolicy\nimage: podferry:1\n"
Pod = dict[str, Any]


@pytest.fixture
def port() -> Iterator[int]:
    with reserved_port() as reserved:
        yield reserved


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[CertificateFiles, ssl.SSLContext]:
    material = renew_if_needed(None, ["localhost"], datetime.now(UTC))
    (tmp_path / "tls.crt").write_bytes(material.certificate)
    (tmp_path / "tls.key").write_bytes(material.key)
    trusting = ssl.create_default_context(cadata=material.bundle.decode())
    return CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key"), trusting


@pytest.fixture
async def kubernetes(api: Any, account: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """An API server with TLS of its own, found as in a pod."""
    material = renew_if_needed(None, ["localhost"], datetime.now(UTC))
    (account / "ca.crt").write_bytes(material.bundle)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    load(context, material)
    runner = web.AppRunner(api.application())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "localhost")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(runner.addresses[0][1]))
    yield
    await runner.cleanup()


async def until(question: Callable[[], Any], running: asyncio.Task[None]) -> Any:
    """The first true answer, as long as the webhook lives."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if running.done():
                running.result()
            answer = await question()
            if answer:
                return answer
            await asyncio.sleep(0.02)


async def mutate(port: int, trusting: ssl.SSLContext, pod: Pod) -> Pod | None:
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"version": "v1", "kind": "Pod"},
            "namespace": "team",
            "object": pod,
        },
    }
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"https://localhost:{port}/mutate", json=review, ssl=trusting) as response,
        ):
            answer: Pod = (await response.json())["response"]
            return answer
    except aiohttp.ClientConnectorError:
        return None


async def end(running: asyncio.Task[None]) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(running, PATIENCE)


async def test_with_a_given_certificate(
    port: int,
    policy_file: Path,
    files: tuple[CertificateFiles, ssl.SSLContext],
    annotated_pod: Callable[..., Pod],
) -> None:
    certificates, trusting = files
    config = WebhookConfig(policy_file, "127.0.0.1", port, certificates, shutdown_delay=0.0, refresh=0.02)
    running = asyncio.create_task(run_webhook(config))
    answer = await until(lambda: mutate(port, trusting, annotated_pod()), running)
    assert b'"podferry:1"' in base64.b64decode(answer["patch"])
    policy_file.write_text(POLICY.replace("podferry:1", "podferry:2"))

    async def has_changed() -> bool:
        answer = await mutate(port, trusting, annotated_pod())
        return answer is not None and b'"podferry:2"' in base64.b64decode(answer["patch"])

    await until(has_changed, running)
    await end(running)
    assert await mutate(port, trusting, annotated_pod()) is None


async def test_no_review_fails_while_policy_and_certificate_change(
    port: int,
    policy_file: Path,
    files: tuple[CertificateFiles, ssl.SSLContext],
    annotated_pod: Callable[..., Pod],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CertificateLoader.run, "__defaults__", (0.02,))
    certificates, trusting = files
    config = WebhookConfig(policy_file, "127.0.0.1", port, certificates, shutdown_delay=0.0, refresh=0.02)
    running = asyncio.create_task(run_webhook(config))
    await until(lambda: mutate(port, trusting, annotated_pod()), running)
    served = {await asyncio.to_thread(peer_certificate, port, trusting)}
    for number in range(1, 6):
        policy_file.write_text(POLICY.replace("podferry:1", f"podferry:{number}"))
        renewed = renew_if_needed(None, ["localhost"], datetime.now(UTC))
        certificates.certificate.write_bytes(renewed.certificate)  # for a moment, only half of the pair
        assert await mutate(port, trusting, annotated_pod())
        certificates.key.write_bytes(renewed.key)
        trusting.load_verify_locations(cadata=renewed.bundle.decode())

        async def is_new(image: bytes = b'"podferry:%d"' % number) -> bool:
            answer = await mutate(port, trusting, annotated_pod())
            assert answer is not None
            found = await asyncio.to_thread(peer_certificate, port, trusting)
            return image in base64.b64decode(answer["patch"]) and found not in served

        await until(is_new, running)
        served.add(await asyncio.to_thread(peer_certificate, port, trusting))
    assert len(served) == 6
    await end(running)


def peer_certificate(port: int, trusting: ssl.SSLContext) -> bytes:
    """The certificate that is served now."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as plain,
        trusting.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        found = connection.getpeercert(binary_form=True)
        assert found is not None
        return found


@pytest.mark.usefixtures("kubernetes")
async def test_in_a_cluster(
    port: int,
    policy_file: Path,
    account: Path,
    memory_cluster: MemoryCluster,
    annotated_pod: Callable[..., Pod],
) -> None:
    own = ManagedCertificates("podferry-webhook", "podferry", "podferry-webhook", account)
    config = WebhookConfig(policy_file, "127.0.0.1", port, own, shutdown_delay=0.0)
    running = asyncio.create_task(run_webhook(config))

    async def answer() -> Pod | None:
        bundle = base64.b64decode(memory_cluster.bundles["mutatingwebhookconfigurations/podferry"]).decode()
        if not bundle:
            return None
        context = ssl.create_default_context(cadata=bundle)
        context.check_hostname = False  # The name is the Service's, which no DNS knows here.
        return await mutate(port, context, annotated_pod())

    assert (await until(answer, running))["allowed"]
    await end(running)
    assert set(memory_cluster.secrets["podferry-webhook"]["data"]) == {
        "ca.crt",
        "ca.key",
        "tls.crt",
        "tls.key",
        "stamp.keys",
    }


@pytest.mark.usefixtures("kubernetes")
async def test_a_start_with_an_invalid_policy(
    port: int, policy_file: Path, account: Path, memory_cluster: MemoryCluster
) -> None:
    """The last valid one is used, and kept when it changes."""
    own = ManagedCertificates("podferry-webhook", "podferry", "podferry-webhook", account)
    config = WebhookConfig(policy_file, "127.0.0.1", port, own, shutdown_delay=0.0, refresh=0.02)

    def kept() -> str | None:
        text: str | None = (
            memory_cluster.config_maps["podferry-last-policy"].get("data", {}).get("policy.yaml")
        )
        return text

    async def keeps(text: str) -> bool:
        return kept() == text

    running = asyncio.create_task(run_webhook(config))
    await until(lambda: keeps(POLICY), running)
    await end(running)
    policy_file.write_text("kind: Other")
    running = asyncio.create_task(run_webhook(config))
    await until(lambda: is_open(port), running)
    assert kept() == POLICY
    policy_file.write_text(POLICY.replace("podferry:1", "podferry:2"))
    await until(lambda: keeps(policy_file.read_text()), running)
    await end(running)
    memory_cluster.config_maps["podferry-last-policy"]["data"] = {}
    policy_file.write_text("kind: Other")
    with pytest.raises(InvalidSpec, match="apiVersion is missing"):
        await run_webhook(config)


@pytest.mark.usefixtures("kubernetes")
async def test_a_changed_config_map_counts_before_the_file_changes(
    port: int, policy_file: Path, account: Path, memory_cluster: MemoryCluster
) -> None:
    own = ManagedCertificates("podferry-webhook", "podferry", "podferry-webhook", account)
    config = WebhookConfig(
        *(policy_file, "127.0.0.1", port, own),
        shutdown_delay=0.0,
        refresh=0.02,
        policy_config_map="podferry-policy",
    )
    memory_cluster.add_config_map("podferry-policy")

    async def keeps(text: str) -> bool:
        kept = memory_cluster.config_maps["podferry-last-policy"].get("data", {})
        return bool(kept.get("policy.yaml") == text)

    running = asyncio.create_task(run_webhook(config))
    await until(lambda: keeps(POLICY), running)
    changed = POLICY.replace("podferry:1", "podferry:2")
    memory_cluster.config_maps["podferry-policy"]["data"] = {"policy.yaml": changed}
    await until(lambda: keeps(changed), running)
    await end(running)


async def is_open(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


@pytest.mark.usefixtures("kubernetes")
async def test_without_its_secret(port: int, policy_file: Path, account: Path) -> None:
    own = ManagedCertificates("absent", "podferry", "podferry-webhook", account)
    with pytest.raises(NotFound, match="Check the RBAC of its account"):
        await run_webhook(WebhookConfig(policy_file, "127.0.0.1", port, own))


async def test_with_a_wrong_policy(
    port: int, policy_file: Path, files: tuple[CertificateFiles, ssl.SSLContext]
) -> None:
    policy_file.write_text("kind: Other")
    with pytest.raises(InvalidSpec, match="apiVersion is missing"):
        await run_webhook(WebhookConfig(policy_file, "127.0.0.1", port, files[0]))
