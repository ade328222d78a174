"""Starts real servers on loopback, and makes a bucket in each with its vendor's own request."""

import base64
import contextlib
import hashlib
import hmac
import importlib
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from email.utils import formatdate

from tests.support.patience import PATIENCE
from tests.support.server_binaries import installed

AZURITE_ACCOUNT = "devstoreaccount1"
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's documented account; it guards nothing."""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def free_ports(count):
    """Ports in a row that nobody uses, below those that the system gives to clients."""
    first = 20_000 + os.getpid() % 400 * 25
    for start in (*range(first, 32_000, count), *range(20_000, first, count)):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(start, start + count):
                listener = stack.enter_context(socket.socket())
                # Else ports of the last minute count as taken: thousands after a benchmark of FTP.
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(("127.0.0.1", port))
            return tuple(range(start, start + count))
    raise RuntimeError(f"no {count} free ports in a row")


@contextlib.contextmanager
def running(command, port, log, host="127.0.0.1", **environ):
    """A server's process, ready when its port takes connections; stopped by its own process id."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env={**os.environ, **environ}, cwd=log.parent
        )
        try:
            _wait(process, (host, port), log)
            yield process
        finally:
            process.terminate()
            process.wait(timeout=100)


def _wait(process, address, log, seconds=150):
    deadline = time.monotonic() + seconds
    while True:
        if process.poll() is not None:
            raise RuntimeError(
                f"{process.args[0]} ended with {process.returncode}:\n{log.read_text()[-2000:]}"
            )
        with contextlib.suppress(OSError), socket.create_connection(address, timeout=1):
            return
        if time.monotonic() > deadline:
            raise RuntimeError(
                f"{process.args[0]} does not listen after {seconds} s:\n{log.read_text()[-2000:]}"
            )
        time.sleep(0.05)


@contextlib.contextmanager
def versitygw(folder, key, secret, region="us-east-1", *options):
    port, data = free_port(), folder / "data"
    (data / "bucket").mkdir(parents=True)
    command = [installed("versitygw"), "--port", f"127.0.0.1:{port}", "--region", region, *options]
    command += ["posix", str(data)]
    environ = {"ROOT_ACCESS_KEY": key, "ROOT_SECRET_KEY": secret}
    with running(command, port, folder / "log", **environ):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def minio(folder, key, secret, host="127.0.0.1", **environ):
    """MinIO with a bucket `bucket`; `environ` has more of its `MINIO_…` variables."""
    port = free_port()
    command = [installed("minio"), "server", "--quiet", "--address", f"{host}:{port}", str(folder / "data")]
    variables = {"MINIO_ROOT_USER": key, "MINIO_ROOT_PASSWORD": secret, "MINIO_BROWSER": "off"}
    with running(command, port, folder / "log", host.strip("[]"), **variables, **environ):
        endpoint = f"http://{host}:{port}"
        with contextlib.closing(s3_client(endpoint, key, secret, environ.get("MINIO_REGION"))) as client:
            client.create_bucket(Bucket="bucket")
        yield endpoint


def s3_client(endpoint, key, secret, region=None, service="s3"):
    """A boto3 client, which has the calls that podferry has no use for; imported where it is needed."""
    return importlib.import_module("boto3").client(
        service,
        endpoint_url=endpoint,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        region_name=region or "us-east-1",
    )


@contextlib.contextmanager
def azurite(folder):
    port = free_port()
    options = ["--silent", "--skipApiVersionCheck", "--disableTelemetry", "--inMemoryPersistence"]
    address = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    with running([installed("azurite"), *options, *address], port, folder / "log"):
        endpoint = f"http://127.0.0.1:{port}/{AZURITE_ACCOUNT}"
        make_container(endpoint, "bucket")
        yield endpoint


@contextlib.contextmanager
def fake_gcs(folder):
    port = free_port()
    place = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    names = ["-public-host", f"127.0.0.1:{port}", "-external-url", f"http://127.0.0.1:{port}"]
    with running([installed("fake-gcs-server"), *place, *names], port, folder / "log"):
        endpoint = f"http://127.0.0.1:{port}"
        make_gcs_bucket(endpoint, "bucket")
        yield endpoint


def make_gcs_bucket(endpoint, name):
    """Google's "Buckets: insert", which the emulator serves without credentials."""
    request = urllib.request.Request(  # noqa: S310  # loopback
        f"{endpoint}/storage/v1/b",
        json.dumps({"name": name}).encode(),
        {"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=PATIENCE).close()  # noqa: S310  # loopback


def make_container(endpoint, name):
    """Azure's "Create Container", signed with "Shared Key"."""
    date = formatdate(usegmt=True)
    resource = f"/{AZURITE_ACCOUNT}/{AZURITE_ACCOUNT}/{name}\nrestype:container"
    text = f"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:2021-08-06\n{resource}"
    digest = hmac.digest(base64.b64decode(AZURITE_KEY), text.encode(), hashlib.sha256)
    headers = {
        "x-ms-date": date,
        "x-ms-version": "2021-08-06",
        "Authorization": f"SharedKey {AZURITE_ACCOUNT}:{base64.b64encode(digest).decode()}",
    }
    request = urllib.request.Request(f"{endpoint}/{name}?restype=container", headers=headers, method="PUT")  # noqa: S310  # loopback
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return urllib.request.urlopen(request, timeout=PATIENCE).close()  # noqa: S310  # loopback
        except ConnectionError:  # of an emulator that listens and is not ready yet
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
