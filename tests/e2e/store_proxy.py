"""A proxy in front of the object store that holds and slows requests."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from tests.cluster.cluster import Cluster, Server
from tests.cluster.process import wait_until
from tests.e2e.bucket import Bucket

PROXY = Path(__file__).with_name("proxy.py")


class StoreProxy:
    """Another endpoint of the store.

    Attributes:
        endpoint: Its URL, for pods.
    """

    def __init__(self, cluster: Cluster, server: Server, rules: Path) -> None:
        self._cluster, self._server, self._rules = cluster, server, rules
        listens = re.compile(r"counts (\d+)\nport (\d+)\n")
        found = wait_until("the proxy to listen", lambda: listens.search(server.output), 20)
        self.endpoint = f"http://{cluster.host_address}:{found[2]}"
        self._counts = cluster.host_address, int(found[1])

    def sent(self) -> Counter[str]:
        """The bytes that the store has sent so far, heads and lists included, by the client's address."""
        with self._cluster.network(), socket.create_connection(self._counts) as connection:
            return Counter(json.load(connection.makefile()))

    def hold(self, *globs: str) -> None:
        """Hold requests whose line matches (`PUT /e2e/checkpoints/*`); release those held before."""
        _write(self._rules, globs, None)

    def throttle(self, rate: int) -> None:
        """Let at most `rate` bytes a second pass, in both directions together."""
        _write(self._rules, (), rate)

    def release(self) -> None:
        """Let everything pass."""
        _write(self._rules, (), None)

    def stop(self) -> None:
        """Refuse connections from now on."""
        self._server.stop()

    def until_held(self, text: str = "", timeout: float = 120.0) -> None:
        """Wait until a request is held whose line contains a text."""
        wait_until(f"a held request with {text!r}", lambda: self._holds(text), timeout)

    def _holds(self, text: str) -> bool:
        lines = self._server.output.splitlines()
        return any(line.startswith("held ") and text in line for line in lines)


@contextlib.contextmanager
def store_proxy(cluster: Cluster, bucket: Bucket, *held: str) -> Iterator[StoreProxy]:
    """A proxy for the duration of the block; it holds some requests from the beginning."""
    port = urlsplit(bucket.endpoint).port
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder, "rules.json")
        _write(rules, held, None)
        command = [sys.executable, str(PROXY), cluster.host_address, str(port), str(rules)]
        with cluster.run_in_network(command) as server:
            yield StoreProxy(cluster, server, rules)


def _write(rules: Path, held: tuple[str, ...], rate: int | None) -> None:
    temporary = rules.with_suffix(".tmp")
    temporary.write_text(json.dumps({"hold": held, "rate": rate}))
    temporary.replace(rules)
