"""A Kubernetes of one or more nodes without a Docker engine: started, found again, ended without a trace."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.cluster import build, cgroups, configs, image, packages, supervisor
from tests.cluster.components import API_SERVER, KUBELET
from tests.cluster.files import locked, say, write_atomically
from tests.cluster.layout import GATEWAY, Layout
from tests.cluster.process import (
    OWNER,
    ClusterError,
    ProcessId,
    answers,
    owned,
    patient,
    run,
    tail,
    wait_until,
)

_READY = (
    'jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}'
)


class Node:
    """The backend of `Cluster` for machines with only Go, Debian's packages and root."""

    host_address = GATEWAY

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.kubeconfig = layout.kubeconfig

    def up(self) -> None:
        """Ensure a working cluster: reuse the running one if it is complete, or start a new one.

        Raises:
            ClusterError: It cannot run here, or a part failed. Nothing is left running then.
        """
        _require_root()
        self._layout.check()
        packages.ensure(packages.NODE_NEEDS)
        binaries = build.kubernetes(self._layout.cache)
        with locked(self._layout.lock):
            if self._works(binaries):
                return
            self._clear()
            try:
                self._start(binaries)
            except BaseException:  # an interrupted start too: half a cluster is useless
                self._clear()
                raise

    def down(self) -> None:
        """Stop the cluster and remove everything that it left, also of one that was killed."""
        if not self._layout.state.exists() and not owned(os.fspath(self._layout.state)):
            return
        _require_root()
        with locked(self._layout.lock):
            self._clear()

    @property
    def inside(self) -> Sequence[str]:
        """The prefix that runs a command in the cluster's network."""
        return ("nsenter", f"--net={self.network_namespace}", "--")

    @property
    def network_namespace(self) -> Path:
        """The file that setns(2) takes."""
        return Path(f"/proc/{self._init().pid}/ns/net")

    @property
    def owner(self) -> Mapping[str, str]:
        """The environment that marks a process as this cluster's: `down` ends it."""
        return {OWNER: os.fspath(self._layout.state)}

    @property
    def kubectl(self) -> Sequence[str]:
        """The prefix of every kubectl call."""
        inside = self.inside
        binary = Path(self._layout.complete.read_text()) / "kubectl"
        return (*inside, os.fspath(binary), "--kubeconfig", os.fspath(self.kubeconfig))

    @contextlib.contextmanager
    def kubelet(self, settings: Mapping[str, object]) -> Iterator[None]:
        """Other settings of the first kubelet for the block: it is restarted before and after.

        Pods keep running.
        """
        self._restart_kubelet(settings)
        try:
            yield
        finally:
            self._restart_kubelet({})

    def _restart_kubelet(self, settings: Mapping[str, object]) -> None:
        node = self._layout.members[0]
        configs.write_kubelet(node, settings)
        self._kill(KUBELET, str(node.kubelet_config))
        health = [*self.kubectl, "get", "--raw", f"/api/v1/nodes/{node.name}/proxy/healthz"]
        wait_until("the kubelet to answer", lambda: answers(health), 60, interval=0.5)

    def restart_api_server(self) -> None:
        """Kill the API server and wait until it answers again."""
        self._kill(API_SERVER)
        ready = [*self.kubectl, "get", "--raw", "/readyz"]
        wait_until("the API server to answer", lambda: answers(ready), 60, interval=0.2)

    def _kill(self, component: str, argument: str = "") -> None:
        """Kill a part, which is started again; of several, the one with an argument that ends so."""
        candidates = [one for one in owned(os.fspath(self._layout.state)) if one.program == component]
        [process] = [one for one in candidates if any(word.endswith(argument) for word in one.words)]
        write_atomically(self._layout.restarts(component), "")
        process.kill()

    def build_image(self, recipe: image.Recipe) -> None:
        """Build an image and load it."""
        self._init()
        packages.ensure(packages.IMAGE_NEEDS)
        archive = self._layout.state / f"image-{os.getpid()}.tar"
        image.build(self._layout.cache, recipe, archive)
        self.load_image(archive)
        archive.unlink()

    def load_base_image(self) -> None:
        """Build the base image if it is not cached, and load it."""
        packages.ensure(packages.IMAGE_NEEDS)
        self.load_image(image.base(self._layout.cache))

    def load_image(self, archive: Path) -> None:
        """Load a `docker save` or OCI archive."""
        self._init()
        for socket in self._layout.containerd_sockets:
            ctr = ("ctr", "--address", os.fspath(socket), "--namespace", "k8s.io")
            run([*ctr, "images", "import", str(archive)], timeout=300)

    def _init(self) -> ProcessId:
        process = ProcessId.load(self._layout.init_record)
        if process is None or not process.alive:
            raise ClusterError("no cluster runs: python -m tests.cluster up")
        return process

    def _works(self, binaries: Path) -> bool:
        complete = self._layout.complete
        if not complete.exists() or complete.read_text() != os.fspath(binaries):
            return False
        try:
            ready = run([*self.kubectl, "get", "nodes", "-o", _READY], timeout=20)
        except ClusterError:
            return False
        return sorted(ready.split()) == sorted(f"{node.name}=True" for node in self._layout.members)

    def _start(self, binaries: Path) -> None:
        layout = self._layout
        layout.logs.mkdir(parents=True)
        layout.state.chmod(0o700)
        configs.write_all(layout)
        say(f"starting Kubernetes in {layout.state}")
        launch = supervisor.command("launch", layout, binaries)
        run(launch, environment={**self.owner, "PYTHONPATH": os.fspath(supervisor.ROOT)}, cwd=layout.state)
        wait_until("the parts to start", self._started, 120)
        self._wait_for_nodes(binaries)
        self.load_image(binaries / "pause.tar")
        write_atomically(layout.complete, os.fspath(binaries))

    def _started(self) -> bool:
        if self._layout.failure.exists():
            raise ClusterError(self._layout.failure.read_text())
        process = ProcessId.load(self._layout.init_record)
        if process and not process.alive:
            log = (self._layout.logs / "supervisor.log").read_text()
            raise ClusterError(f"the cluster's first process has ended:\n{tail(log)}")
        return self._layout.started.exists()

    def _wait_for_nodes(self, binaries: Path) -> None:
        kubectl = [*self.inside, str(binaries / "kubectl"), "--kubeconfig", str(self.kubeconfig)]
        nodes = [f"node/{node.name}" for node in self._layout.members]
        for awaited in (
            *(("create", node) for node in nodes),
            *(("condition=Ready", node) for node in nodes),
            ("create", "serviceaccount/default"),  # no pod can be created before it
        ):
            try:
                limit = f"--timeout={patient(90):.0f}s"
                run([*kubectl, "wait", f"--for={awaited[0]}", awaited[1], limit], timeout=100)
            except ClusterError:
                self._started()  # a part that ended is the better reason
                raise

    def _clear(self) -> None:
        owner = os.fspath(self._layout.state)
        init = ProcessId.load(self._layout.init_record)
        # The first process first: the kernel then ends all others in its namespace.
        for process in [*([init] if init else []), *owned(owner)]:
            process.kill()
        wait_until("the cluster's processes to end", lambda: _none_owned(owner), 20)
        cgroups.remove(self._layout.cgroup)
        if self._layout.state.exists():
            shutil.rmtree(self._layout.state)


def _none_owned(owner: str) -> bool:
    for process in owned(owner):
        process.kill()
    return not owned(owner)


def _require_root() -> None:
    if os.geteuid() != 0:
        raise ClusterError(
            "without a Docker engine the cluster needs root (namespaces, control groups): "
            "run as root, start Docker, or set KUBECONFIG"
        )
