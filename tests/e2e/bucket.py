"""The bucket of the tests: its objects, its commits, and podferry's commands on it."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from podferry.contract.destination.commit import COMMITS, Commit, decode_commit
from podferry.contract.destination.confidence import CONFIRMED, confirmed_part, with_confidence
from tests.cluster.cluster import Cluster
from tests.cluster.process import run
from tests.support.server_binaries import installed

NAME = "e2e"
KEY, SECRET, REGION = "key-of-tests", "secret-of-tests", "us-east-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION}
"""Of a Secret, and of an environment."""


class Bucket:
    """The bucket `NAME` of a real S3 server that pods reach."""

    def __init__(self, cluster: Cluster, endpoint: str) -> None:
        self._cluster = cluster
        self.endpoint = endpoint
        self._client: Any = boto3.client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name=REGION,
            config=Config(s3={"addressing_style": "path"}, connect_timeout=5, read_timeout=60),
        )

    def uri(self, key: str) -> str:
        """Of an object or a prefix."""
        return f"s3://{NAME}/{key}"

    def put(self, key: str, data: bytes) -> None:
        """Write an object."""
        with self._cluster.network():
            self._client.put_object(Bucket=NAME, Key=key, Body=data)

    def read(self, key: str) -> bytes:
        """An object's bytes."""
        with self._cluster.network():
            data: bytes = self._client.get_object(Bucket=NAME, Key=key)["Body"].read()
        return data

    def delete(self, key: str) -> None:
        """Remove an object."""
        with self._cluster.network():
            self._client.delete_object(Bucket=NAME, Key=key)

    def upload_dataset(self, name: str, files: Mapping[str, bytes]) -> str:
        """Write a dataset; its URI."""
        for file, data in files.items():
            self.put(f"datasets/{name}/{file}", data)
        return self.uri(f"datasets/{name}")

    def objects(self, prefix: str = "") -> dict[str, int]:
        """The sizes of all objects below a prefix, by key."""
        with self._cluster.network():
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=NAME, Prefix=prefix)
            return {item["Key"]: item["Size"] for page in pages for item in page.get("Contents", [])}

    def commits(self, lineage: str, destination: str = "checkpoints") -> list[Commit]:
        """The commits of a lineage, oldest first, as podferry reads them: a confirmed one is sure."""
        place = f"{destination}/{lineage}"
        keys = sorted(self.objects(f"{place}/{COMMITS}/"))
        written = [decode_commit(self.read(key), key) for key in keys]
        names = (key.rpartition("/")[2] for key in self.objects(f"{place}/{CONFIRMED}/"))
        confirmed = {part for part in map(confirmed_part, names) if part is not None}
        return [with_confidence(commit, (), confirmed) for commit in written]

    def committed(self, commit: Commit, destination: str = "checkpoints") -> dict[str, bytes]:
        """The bytes of all files that a commit lists, by the names that the trainer gave them."""
        place = f"{destination}/{commit.lineage}"
        return {file.name: self.read(f"{place}/{file.object}") for file in commit.files}

    def podferry(self, *words: str) -> str:
        """Run `podferry WORDS --endpoint …` in the store's network; return its output."""
        command = [sys.executable, "-m", "podferry.cli.main", *words, "--endpoint", self.endpoint]
        return run([*self._cluster.backend.inside, *command], environment=CREDENTIALS)

    def podferry_json(self, *words: str) -> Any:
        """The same, decoded."""
        return json.loads(self.podferry(*words, "-o", "json"))


@contextlib.contextmanager
def serving(cluster: Cluster, folder: Path) -> Iterator[Bucket]:
    """A bucket for the duration of the block, with its objects below `folder`."""
    (folder / NAME).mkdir(parents=True)
    port = free_port(cluster)
    command = [str(installed("versitygw")), "--port", f"{cluster.host_address}:{port}", "posix", str(folder)]
    root = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
    with cluster.run_in_network(command, port=port, environment=root):
        yield Bucket(cluster, f"http://{cluster.host_address}:{port}")


def free_port(cluster: Cluster) -> int:
    """A free TCP port in the network of `run_in_network`."""
    with cluster.network(), socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        port: int = listener.getsockname()[1]
        return port
