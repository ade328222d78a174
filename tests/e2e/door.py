"""A door before the object store: a test holds requests there and slows them down."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from tests.cluster.cluster import Cluster, Server
from tests.cluster.process import wait_until
from tests.e2e.bucket import Bucket

PROXY = Path(__file__).with_name("proxy.py")


class Door:
    """Another endpoint of the store.

    Attributes:
        endpoint: Its URL, for pods.
    """

    def __init__(self, host: str, server: Server, rules: Path) -> None:
        self._server, self._rules = server, rules
        port = wait_until("the proxy to listen", lambda: re.search(r"port (\d+)", server.output), 20)[1]
        self.endpoint = f"http://{host}:{port}"

    def hold(self, *globs: str) -> None:
        """Hold requests whose line fits (`PUT /e2e/checkpoints/*`), those on their way let go."""
        _write(self._rules, globs, None)

    def slow(self, rate: int) -> None:
        """Let at most `rate` bytes a second pass, both ways together."""
        _write(self._rules, (), rate)

    def open(self) -> None:
        """Let everything pass."""
        _write(self._rules, (), None)

    def until_held(self, text: str = "", timeout: float = 120.0) -> None:
        """Wait until a request is held whose line contains a text."""
        wait_until(f"a held request with {text!r}", lambda: self._holds(text), timeout)

    def _holds(self, text: str) -> bool:
        lines = self._server.output.splitlines()
        return any(line.startswith("held ") and text in line for line in lines)


@contextlib.contextmanager
def door(cluster: Cluster, bucket: Bucket, *held: str) -> Iterator[Door]:
    """A door for the block's time, closed for some requests from the beginning."""
    port = urlsplit(bucket.endpoint).port
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder, "rules.json")
        _write(rules, held, None)
        command = [sys.executable, str(PROXY), cluster.host_address, str(port), str(rules)]
        with cluster.run_in_network(command) as server:
            yield Door(cluster.host_address, server, rules)


def _write(rules: Path, held: tuple[str, ...], rate: int | None) -> None:
    aside = rules.with_suffix(".tmp")
    aside.write_text(json.dumps({"hold": held, "rate": rate}))
    aside.replace(rules)
