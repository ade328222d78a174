"""Object stores that pods reach: Azurite, fake-gcs-server, and an S3 server that is configured as BOS."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.process import run
from tests.e2e.bucket import KEY, SECRET, free_port
from tests.e2e.source import Source
from tests.support.real_servers import AZURITE_ACCOUNT, AZURITE_KEY, make_container, make_gcs_bucket
from tests.support.server_binaries import installed

SET = "set"
"""Of the files, in the folder and in the bucket."""


def upload(cluster: Cluster, files: Path, target: str, endpoint: str, environment: Mapping[str, str]) -> None:
    """Copy the set to the bucket, by podferry."""
    words = ["dataset", "sync", str(files / SET), target, "--to-endpoint", endpoint]
    command = [sys.executable, "-m", "podferry.cli.main", *words]
    run([*cluster.backend.inside, *command], environment=environment)


@contextlib.contextmanager
def az(cluster: Cluster, files: Path) -> Iterator[Source]:
    """Azurite; the URI names the account."""
    host, port = cluster.host_address, free_port(cluster)
    options = ["--silent", "--skipApiVersionCheck", "--disableTelemetry", "--inMemoryPersistence"]
    command = [str(installed("azurite")), *options, "--blobHost", host, "--blobPort", str(port)]
    endpoint = f"http://{host}:{port}/{AZURITE_ACCOUNT}"
    secret = {"AZURE_STORAGE_ACCOUNT_KEY": AZURITE_KEY}
    place = f"abfss://bucket@{AZURITE_ACCOUNT}.dfs.core.windows.net"
    with cluster.run_in_network(command, port=port):
        with cluster.network():
            make_container(endpoint, "bucket")
        upload(cluster, files, f"{place}/{SET}", endpoint, secret)
        yield Source(f"{place}/{SET}", f"{place}/checkpoints", secret, {"endpoint": endpoint})


@contextlib.contextmanager
def gs(cluster: Cluster, files: Path) -> Iterator[Source]:
    """fake-gcs-server, which has no accounts."""
    host, port = cluster.host_address, free_port(cluster)
    place = ["-scheme", "http", "-host", host, "-port", str(port), "-backend", "memory"]
    endpoint = f"http://{host}:{port}"
    names = ["-public-host", f"{host}:{port}", "-external-url", endpoint]
    secret = {"GOOGLE_SKIP_SIGNATURE": "true"}
    with cluster.run_in_network([str(installed("fake-gcs-server")), *place, *names], port=port):
        with cluster.network():
            make_gcs_bucket(endpoint, "bucket")
        upload(cluster, files, f"gs://bucket/{SET}", endpoint, secret)
        yield Source(f"gs://bucket/{SET}", "gs://bucket/checkpoints", secret, {"endpoint": endpoint})


@contextlib.contextmanager
def bos(cluster: Cluster, files: Path) -> Iterator[Source]:
    """versitygw in a region of BOS, with hosts in the URIs and a Secret as Paddle Operator reads it."""
    host, port = cluster.host_address, free_port(cluster)
    folder = files / "bos"
    (folder / "bucket").mkdir(parents=True)
    address = ["--port", f"{host}:{port}", "--region", "hkg"]
    endpoint, place = f"http://{host}:{port}", "bos://bucket.hkg.bcebos.com"
    secret = {"name": "digits", "storage": "bos", "access-key": KEY, "secret-key": SECRET}
    root = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
    command = [str(installed("versitygw")), *address, "posix", str(folder)]
    environment = {"BOS_ACCESS_KEY_ID": KEY, "BOS_SECRET_ACCESS_KEY": SECRET}
    with cluster.run_in_network(command, port=port, environment=root):
        upload(cluster, files, f"{place}/{SET}", endpoint, environment)
        yield Source(f"{place}/{SET}", f"{place}/checkpoints", secret, {"endpoint": endpoint}, environment)


OBJECT_STORES = {"az": az, "gs": gs, "bos": bos}
