"""A cache on two nodes: created and asked by podferry's commands, its source behind a proxy that counts."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.cluster.process import answers, run, wait_until
from tests.e2e import install
from tests.e2e.bucket import CREDENTIALS
from tests.e2e.manifests import Object, container, pod
from tests.e2e.namespace import STORE_SECRET, Namespace
from tests.e2e.site import Site
from tests.e2e.store_proxy import StoreProxy

HOSTNAME = "kubernetes.io/hostname"
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 8091), 5)"
SHAPE = "tc qdisc add dev eth0 root tbf rate 16mbit burst 64kb latency 400ms"
"""Two MB a second leave the pod."""


class TwoNodeCache:
    """A cache in podferry's namespace, whose readers are the pods of one other namespace.

    Args:
        site: A cluster with two nodes.
        proxy: The source's endpoint.
        readers: The namespace.
        name: Of the cache.
    """

    def __init__(self, site: Site, proxy: StoreProxy, readers: Namespace, name: str = "digits") -> None:
        self.site, self.proxy, self.readers, self.name = site, proxy, readers, name
        self.nodes = site.cluster.require_nodes(2)[:2]
        self.set = f"podferry-cache-{name}"
        self._asking = [self._asker(node) for node in self.nodes]

    def _asker(self, node: str) -> Object:
        """A pod on a node that stays."""
        sleeper = container(script="import time; time.sleep(36000)")
        asker = pod(f"{self.name}-{node}", sleeper, terminationGracePeriodSeconds=0, **on(node))
        self.readers.start(asker)
        return asker

    def create(self, source: str, nodes: int) -> None:
        """`podferry cache create`, applied."""
        where = ("-n", install.NAMESPACE, "--secret", STORE_SECRET, "--endpoint", self.proxy.endpoint)
        who = ("--readers", self.readers.name, "--image", install.IMAGE)
        words = (self.name, "--source", source, "--nodes", str(nodes), *where, *who)
        self.site.cluster.kubectl("apply", "-f", "-", stdin=self._podferry("create", *words))

    def verb(self, verb: str, *words: str) -> str:
        """What `podferry cache VERB` prints about it."""
        options = ("-n", install.NAMESPACE, "--kubeconfig", str(self.site.cluster.kubeconfig))
        return self._podferry(verb, self.name, *words, *options)

    def _podferry(self, verb: str, *words: str) -> str:
        command = [sys.executable, "-m", "podferry", "cache", verb, *words]
        with self.site.cluster.network():
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done
        return done.stdout

    def warm(self) -> float:
        """Wait until each holder has all; the seconds that it took."""
        began = time.monotonic()
        self.verb("warmup", "--timeout", "300")
        return time.monotonic() - began

    def scale(self, holders: int) -> None:
        """Have so many holders; wait until they listen and pods of both nodes reach the Service."""
        cluster, space = self.site.cluster, ("-n", install.NAMESPACE)
        cluster.kubectl(*space, "scale", f"statefulset/{self.set}", f"--replicas={holders}")
        for number in range(holders, len(self.nodes)):
            cluster.wait(f"pod/{self.set}-{number}", "delete", namespace=install.NAMESPACE)
        if holders:
            ready = f"jsonpath={{.status.readyReplicas}}={holders}"
            cluster.wait(f"statefulset/{self.set}", ready, namespace=install.NAMESPACE, timeout=120)
            for one in self._asking:
                self.readers.until("the Service to respond", lambda one=one: self._reaches(one))

    def _reaches(self, asker: Object) -> bool:
        words = ("exec", asker["metadata"]["name"], "--", "python3", "-c", CONNECT, self.address)
        return self.readers.ask(*words).code == 0

    @property
    def address(self) -> str:
        """Of its Service."""
        service = self.site.cluster.get("-n", install.NAMESPACE, "service", self.set)
        return str(service["spec"]["clusterIP"])

    def holders(self) -> dict[str, dict[str, Any]]:
        """The holders that run or begin to, by their node."""
        found = self.site.cluster.get("-n", install.NAMESPACE, "pods", "-l", f"podferry.io/cache={self.name}")
        return {one["spec"].get("nodeName", ""): one for one in found["items"]}

    def annotations(self, dataset: str = "") -> dict[str, str]:
        """Of a pod that reads the dataset: by the cache's name, or by a reference."""
        values = self.readers.store_annotations(dataset=dataset or self.name, dataset_size="32Mi")
        return values | {"podferry.io/endpoint": self.proxy.endpoint}

    def wait_for_webhook(self) -> None:
        """Wait until pods get the cache."""
        probe = pod("probe", container(command=["true"]), annotations=self.annotations())
        flag = f"--dataset-cache=http://{self.address}:8091"

        def knows() -> bool:
            return flag in self.readers.try_create(probe).output

        self.readers.until("the webhook to know the cache", knows)

    @contextlib.contextmanager
    def counted(self) -> Iterator[dict[str, int]]:
        """The bytes that the source sends to each address in the block; filled in at its end."""
        before = self.proxy.sent()
        counts: dict[str, int] = {}
        yield counts
        counts.update(self.proxy.sent() - before)

    def remove(self) -> None:
        """`podferry cache delete`."""
        self.verb("delete", "--force")


def on(node: str) -> dict[str, Mapping[str, str]]:
    """The members of a pod's spec that have it run on a node."""
    return {"nodeSelector": {HOSTNAME: node}}


def process_of(holder: Mapping[str, Any]) -> int:
    """The process id of a holder, whose node must be on this machine."""
    uid = holder["metadata"]["uid"]

    def found() -> int | None:
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if b"serve" in words and uid in (entry / "cgroup").read_text():
                    return int(entry.name)
        return None

    return wait_until("the holder's process", found, 30)


def kill(holder: Mapping[str, Any]) -> None:
    """SIGKILL: the kubelet starts its container again."""
    os.kill(process_of(holder), signal.SIGKILL)


def slow_down(holder: Mapping[str, Any]) -> bool:
    """Let it send slowly, until its pod ends; False if this kernel cannot."""
    return answers([*_network_of(holder), *SHAPE.split()])


def sent_by(holder: Mapping[str, Any]) -> int:
    """The bytes that it has sent since it was slowed down."""
    shown = run([*_network_of(holder), "tc", "-json", "-s", "qdisc", "show", "dev", "eth0"])
    return int(json.loads(shown)[0]["bytes"])


def _network_of(holder: Mapping[str, Any]) -> list[str]:
    return ["nsenter", f"--net=/proc/{process_of(holder)}/ns/net", "--"]


@contextlib.contextmanager
def store_secret(site: Site) -> Iterator[None]:
    """The Secret of the holders."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": STORE_SECRET}}
    name = ("-n", install.NAMESPACE)
    site.cluster.kubectl(*name, "create", "-f", "-", stdin=json.dumps({**secret, "stringData": CREDENTIALS}))
    try:
        yield
    finally:
        site.cluster.kubectl(*name, "delete", "secret", STORE_SECRET)
