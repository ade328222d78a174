"""Names, paths and addresses of a cluster: everything that its parts must agree on."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.process import ClusterError

KUBERNETES = "1.34.4"
NODE = "node-1"
MAX_NODES = 16

# Inside the cluster's own network namespaces nothing else has addresses, so these may be fixed.
GATEWAY = "10.244.0.1"  # the first node, its bridge, and the servers that tests start for pods
PODS = "10.244.0.0/16"
SERVICES = "10.96.0.0/16"
API_PORT = 6443

BASE_IMAGE = "localhost/podferry-base:py311"
PAUSE_IMAGE = "localhost/podferry-pause:1"

GPUS = 4  # what the node claims to have, for the scheduler

# Directories that an empty file system covers inside the cluster's mount namespace, since the parts
# write there whatever their options say: shims' sockets, /var/lib/cni, /var/lib/kubelet, /var/log/pods.
COVERED = ("/run", "/var/lib", "/var/log")

_SOCKET = "containerd.sock"
_SOCKET_LIMIT = 107  # bytes of a Unix socket's path, unix(7)


@dataclass(frozen=True)
class Member:
    """One node of a cluster: its name, addresses and paths.

    Attributes:
        number: 1 for the first.
        cluster_state: The cluster's state directory.
        cluster_cgroup: The cluster's cgroup.
    """

    number: int
    cluster_state: Path
    cluster_cgroup: str

    @property
    def name(self) -> str:
        """Of the Node."""
        return f"node-{self.number}"

    @property
    def state(self) -> Path:
        """What only this node reads and writes."""
        return self.cluster_state / self.name

    @property
    def containerd_socket(self) -> Path:
        """containerd's socket, for the kubelet and `ctr`."""
        return self.state / _SOCKET

    @property
    def kubelet_config(self) -> Path:
        """What the kubelet reads when it starts."""
        return self.state / "kubelet.json"

    @property
    def gateway(self) -> str:
        """The node's address and its bridge's."""
        return f"10.244.{self._third}.1"

    @property
    def bridge(self) -> str:
        """The bridge's link address: locally administered, with the address, as CNI plugins make them."""
        return f"0a:58:0a:f4:{self._third:02x}:01"

    @property
    def pods(self) -> str:
        """The addresses of its pods: 4,093, so that none is used again soon."""
        return f"10.244.{self._third}.0/20"

    @property
    def cgroup(self) -> str:
        """The kubelet's root in every hierarchy: kubelets that share one end each other's pods."""
        return self.cluster_cgroup if self.number == 1 else f"{self.cluster_cgroup}/{self.name}"

    @property
    def _third(self) -> int:
        return 16 * (self.number - 1)


@dataclass(frozen=True)
class Layout:
    """The paths of a cluster.

    Attributes:
        name: The cluster's name; its cgroups have it too.
        cache: What outlives clusters: binaries, images, locks; also holds the state.
        nodes: How many there are.
    """

    name: str
    cache: Path
    nodes: int = 1

    @classmethod
    def of(
        cls, environment: Mapping[str, str] = os.environ, name: str | None = None, nodes: int = 1
    ) -> Layout:
        """The layout for `name`, or for `PODFERRY_CLUSTER`, else "podferry"; cache as XDG says.

        A cluster of several nodes has another name by default: the ordinary one may run at the same time.
        """
        if not 1 <= nodes <= MAX_NODES:
            raise ClusterError(f"a cluster of {nodes} nodes cannot be started: use 1 to {MAX_NODES}")
        usual = "podferry" if nodes == 1 else f"podferry-{nodes}-nodes"
        chosen = name or environment.get("PODFERRY_CLUSTER") or usual
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", chosen):
            raise ClusterError(f"{chosen!r} cannot name a cluster: use up to 32 of a-z, 0-9 and -")
        home = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return cls(chosen, Path(home).resolve() / "podferry", nodes)

    @property
    def members(self) -> tuple[Member, ...]:
        """The nodes; the first one also runs what a cluster has once."""
        return tuple(Member(number, self.state, self.cgroup) for number in range(1, self.nodes + 1))

    @property
    def state(self) -> Path:
        """All that ends with the cluster."""
        return self.cache / "clusters" / self.name

    @property
    def lock(self) -> Path:
        """Held while the cluster is started or ended."""
        return self.cache / "locks" / self.name

    @property
    def tests_lock(self) -> Path:
        """Held while tests use the cluster."""
        return self.cache / "locks" / f"{self.name}.tests"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.state / "admin.kubeconfig"

    def restarts(self, component: str) -> Path:
        """Exists while this part, when it ends, must be started again."""
        return self.state / f"restarts-{component}"

    @property
    def logs(self) -> Path:
        """One file a part."""
        return self.state / "log"

    @property
    def api_certificate(self) -> Path:
        """The API server's certificate with the authority that signed it."""
        return self.state / "apiserver" / "apiserver.crt"

    @property
    def init_record(self) -> Path:
        """The process that holds the first node's namespaces, and ends all others with it."""
        return self.state / "init.json"

    @property
    def started(self) -> Path:
        """Exists once every part has been started."""
        return self.state / "started"

    @property
    def failure(self) -> Path:
        """Exists if a part could not be started, or has ended, and says which."""
        return self.state / "failure"

    @property
    def complete(self) -> Path:
        """Exists once `up` has finished; holds the directory of the binaries that run."""
        return self.state / "complete"

    @property
    def containerd_sockets(self) -> list[Path]:
        """Those of the nodes that there are, whatever `nodes` says: of a cluster that runs."""
        return sorted(self.state.glob(f"*/{_SOCKET}"))

    @property
    def cgroup(self) -> str:
        """The name of the cluster's cgroup in every hierarchy."""
        return f"podferry-{self.name}"

    def check(self) -> None:
        """Raise ClusterError if the cluster could not work at these paths."""
        if len(os.fsencode(self.members[-1].containerd_socket)) > _SOCKET_LIMIT:
            raise ClusterError(f"{self.state} is too long for Unix sockets: set XDG_CACHE_HOME to less")
        for path, covered in itertools.product((self.cache, Path(sys.base_prefix)), COVERED):
            if path.is_relative_to(covered):
                raise ClusterError(
                    f"{path} is in {covered}, which the cluster hides from its parts: "
                    "set XDG_CACHE_HOME elsewhere, or use a Python from elsewhere"
                )


def on_overlay(path: Path) -> bool:
    """Whether `path` is on an overlay file system, as in a container; overlays do not stack on it."""
    while not path.exists():
        path = path.parent
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    covering = [mount for mount in mounts if path.is_relative_to(mount[1])]
    return max(enumerate(covering), key=lambda item: (len(item[1][1]), item[0]))[1][2] == "overlay"
