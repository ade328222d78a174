"""`Cluster`: the cluster of the end-to-end tests, independent of its backend."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from tests.cluster.existing import ExistingCluster
from tests.cluster.image import Recipe
from tests.cluster.kind import Kind, docker_answers
from tests.cluster.layout import GPUS, Layout
from tests.cluster.node import Node
from tests.cluster.process import DIES_WITH_PARENT, ClusterError, answers, patient, run, tail, wait_until

Object = Mapping[str, Any]  # a Kubernetes object, as JSON has it

_NEW_NETWORK = 0x40000000  # setns(2)


class Backend(Protocol):
    """What differs between kinds of clusters."""

    kubeconfig: Path

    def up(self) -> None: ...
    def down(self) -> None: ...
    @property
    def inside(self) -> Sequence[str]: ...
    @property
    def network_namespace(self) -> Path | None: ...
    @property
    def owner(self) -> Mapping[str, str]: ...
    @property
    def kubectl(self) -> Sequence[str]: ...
    @property
    def host_address(self) -> str: ...
    def build_image(self, recipe: Recipe) -> None: ...
    def load_base_image(self) -> None: ...
    def load_image(self, archive: Path) -> None: ...


def choose(environment: Mapping[str, str] = os.environ, nodes: int = 1) -> Backend:
    """The cluster that KUBECONFIG names; else kind, if Docker responds; else our own nodes.

    The first two have the nodes that they have: see `Cluster.require_nodes`.
    """
    if named := environment.get("KUBECONFIG"):
        return ExistingCluster(Path(named.partition(os.pathsep)[0]))
    if docker_answers():
        return Kind(Layout.of(environment))
    return Node(Layout.of(environment, nodes=nodes))


class Server:
    """A process that `run_in_network` started."""

    def __init__(self, process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
        self.process = process
        self._output = output

    @property
    def output(self) -> str:
        """Its output so far, standard output and error together."""
        # Not by seek and read: the process writes at the same offset.
        file = self._output.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")

    def stop(self, timeout: float = 5.0) -> None:
        """SIGTERM, and SIGKILL if that takes longer than `timeout` seconds on a quiet machine."""
        self.process.terminate()
        try:
            self.process.wait(patient(timeout))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Cluster:
    """A Kubernetes cluster for tests."""

    def __init__(self, backend: Backend | None = None) -> None:
        self.backend = backend or choose()

    def up(self) -> Cluster:
        """Start it, or reuse a healthy one. Returns itself."""
        self.backend.up()
        if not isinstance(self.backend, ExistingCluster):
            self.set_gpus(GPUS)
        return self

    def down(self) -> None:
        """Stop it, unless it is the user's own."""
        self.backend.down()

    @property
    def kubeconfig(self) -> Path:
        """The administrator's. With `Node` it works inside the cluster's network only."""
        return self.backend.kubeconfig

    @property
    def host_address(self) -> str:
        """The address at which pods reach servers that `run_in_network` started."""
        return self.backend.host_address

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = 60.0) -> str:
        """Run kubectl and return what it printed.

        Raises:
            ClusterError: It failed; with its message.
        """
        return run([*self.backend.kubectl, *arguments], stdin=stdin, timeout=timeout)

    def get(self, *arguments: str) -> Any:
        """`kubectl get ARGUMENTS -o json`, decoded."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def find(self, *arguments: str) -> Any | None:
        """As `get` for one object, or None if it does not exist."""
        found = self.kubectl("get", *arguments, "--ignore-not-found", "-o", "json")
        return json.loads(found) if found else None

    def apply(self, *objects: str | Object) -> str:
        """`kubectl apply` of objects, or of texts in YAML."""
        return self.kubectl("apply", "-f", "-", stdin=documents(objects))

    def create_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Create a namespace and wait until pods can be created in it."""
        metadata = {"name": name, "labels": dict(labels or {})}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        self.wait("serviceaccount/default", "create", namespace=name)

    def wait(
        self, resource: str, condition: str, *, namespace: str = "default", timeout: float = 60.0
    ) -> None:
        """`kubectl wait`: `"create"`, `"delete"`, `"condition=Ready"`, `"jsonpath={.status.phase}=Running"`.

        Raises:
            ClusterError: It did not come true within `timeout` seconds; with the object's description.
        """
        limit = f"--timeout={patient(timeout):.0f}s"
        words = ["wait", f"--for={condition}", resource, "-n", namespace, limit]
        try:
            self.kubectl(*words, timeout=timeout + 10)
        except ClusterError as error:
            described = ""
            with contextlib.suppress(ClusterError):  # it may not exist
                described = self.kubectl("describe", resource, "-n", namespace)
            raise ClusterError(f"{error}\n{tail(described, 60)}") from error

    def require_nodes(self, count: int) -> list[str]:
        """The names of the nodes that take ordinary pods.

        Raises:
            ClusterError: There are fewer than `count`.
        """
        nodes = self.get("nodes")["items"]
        names = [node["metadata"]["name"] for node in nodes if not _is_kept_free(node["spec"])]
        if len(names) < count:
            remedy = "add nodes to it, or unset KUBECONFIG and stop Docker to have them started"
            raise ClusterError(f"the cluster has {len(names)} nodes for pods, not {count}: {remedy}")
        return names

    def set_gpus(self, count: int) -> None:
        """Let every node claim `count` GPUs: an extended resource, which needs no device.

        https://kubernetes.io/docs/tasks/administer-cluster/extended-resource-node/
        """
        claimed = {"nvidia.com/gpu": str(count)}
        patch = json.dumps({"status": {"capacity": claimed, "allocatable": claimed}})
        for node in self.get("nodes")["items"]:
            name = node["metadata"]["name"]
            if node["status"]["capacity"].get("nvidia.com/gpu") != str(count):
                self.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", patch)

    def build_image(
        self, tag: str, dockerfile: Path, context: Path, arguments: Mapping[str, str] | None = None
    ) -> None:
        """Build a Dockerfile into the cluster. It gets the base image's name as the build argument BASE."""
        self.backend.build_image(Recipe(tag, dockerfile, context, arguments or {}))

    def load_base_image(self) -> None:
        """Load `layout.BASE_IMAGE`, a Python 3.11, into the cluster."""
        self.backend.load_base_image()

    def load_image(self, archive: Path) -> None:
        """Load a `docker save` archive into the cluster."""
        self.backend.load_image(archive)

    @contextlib.contextmanager
    def run_in_network(
        self,
        command: Sequence[str],
        *,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
        timeout: float = 20.0,
    ) -> Iterator[Server]:
        """Run a server that pods can reach at `host_address`, until the block ends.

        Args:
            command: It has to listen at 0.0.0.0 or `host_address`, and ends with this process at the latest.
            port: Wait until this TCP port accepts connections.
            environment: Variables in addition to this process's.
            timeout: Seconds that it may take to listen.
        """
        variables = os.environ | dict(environment or {}) | dict(self.backend.owner)
        prefix = (*DIES_WITH_PARENT, *self.backend.inside)
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                [*prefix, *command], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=variables
            )
            server = Server(process, output)
            try:
                if port is not None:
                    wait_until(
                        f"{command[0]} to listen at {port}", lambda: self._listens(server, port), timeout
                    )
                yield server
            finally:
                server.stop()

    def _listens(self, server: Server, port: int) -> bool:
        if server.process.poll() is not None:
            raise ClusterError(
                f"the server has ended with {server.process.returncode}\n{tail(server.output)}"
            )
        connect = f"import socket; socket.create_connection(({self.host_address!r}, {port}), 1)"
        return answers([*self.backend.inside, sys.executable, "-c", connect])

    @contextlib.contextmanager
    def network(self) -> Iterator[None]:
        """Let this thread connect from the cluster's network.

        Sockets opened in the block stay in that network; other threads are not affected.
        """
        namespace = self.backend.network_namespace
        if namespace is None:
            yield
            return
        with Path("/proc/thread-self/ns/net").open("rb") as home, namespace.open("rb") as there:
            _enter(there)
            try:
                yield
            finally:
                _enter(home)


def _is_kept_free(spec: Object) -> bool:
    # A node that has just become ready keeps this taint for a moment.
    taints = [one for one in spec.get("taints", ()) if one["key"] != "node.kubernetes.io/not-ready"]
    effects = {taint["effect"] for taint in taints}
    return bool(spec.get("unschedulable")) or not effects.isdisjoint({"NoSchedule", "NoExecute"})


def _enter(namespace: IO[bytes]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace.fileno(), _NEW_NETWORK):
        raise ClusterError(f"cannot enter the cluster's network: {os.strerror(ctypes.get_errno())}")


def documents(objects: Sequence[str | Object]) -> str:
    """One YAML stream of objects (JSON is YAML) and YAML texts."""
    return "\n---\n".join(item if isinstance(item, str) else json.dumps(item) for item in objects)
